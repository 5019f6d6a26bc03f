"""Captions of the user's clips, judged next to their frames, without any questions."""
