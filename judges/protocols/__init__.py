"""One protocol a benchmark: which requests a question takes, and how replies are read."""
