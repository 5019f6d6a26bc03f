"""One protocol per benchmark: which requests a question takes, and how replies are read."""
