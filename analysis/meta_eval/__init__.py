"""How a metric agrees with people."""
