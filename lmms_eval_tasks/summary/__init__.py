"""The last screen of a run: what was measured, how sure it is, where it is, what to do next."""
