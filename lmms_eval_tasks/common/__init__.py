"""Metrics and clips that several benchmarks share."""
