"""Judges of the same captions compared: agreement, leniency, ranking of captioners, cost."""
