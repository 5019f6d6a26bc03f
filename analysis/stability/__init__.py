"""Verdicts that a judge repeats, and a benchmark split by them."""
