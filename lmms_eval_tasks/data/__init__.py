"""Finding and reading benchmark files, here or on the hub."""
