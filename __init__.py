"""Scores of video captions."""
