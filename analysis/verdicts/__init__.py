"""What was judged in a run that is over, read back without lmms-eval."""
