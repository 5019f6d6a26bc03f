"""Analyses of finished runs: compare, agree, stability, labels, report."""
