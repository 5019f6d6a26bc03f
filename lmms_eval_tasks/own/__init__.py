"""Captions of one's own clips, judged beside their frames, without any questions."""
