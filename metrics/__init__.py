"""Pure functions from verdicts and captions to numbers."""
