"""Captioners compared on the same questions: scores, differences, gates, paper tables."""
