"""How often a judge says the same, and a benchmark split by it."""
