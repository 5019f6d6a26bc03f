"""Reading what servers answer."""
