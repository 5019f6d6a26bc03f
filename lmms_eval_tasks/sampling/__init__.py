"""Judging a sample of the questions: as many as make the score as sure as it is asked to be."""
