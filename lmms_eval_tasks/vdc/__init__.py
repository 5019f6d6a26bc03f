"""VDC: detailed video captions scored by questions (VDCscore)."""
