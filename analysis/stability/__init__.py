"""How often a judge repeats its verdicts, and a benchmark split by it."""
