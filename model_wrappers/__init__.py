"""Captioners: lmms-eval models that write, or look up, one caption per video."""
