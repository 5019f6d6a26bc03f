"""Captions that are written already."""
