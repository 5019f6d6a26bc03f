"""Replies on disk."""
