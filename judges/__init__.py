"""Talking to a judge: settings, client, engine, store, and one protocol a benchmark."""
