"""The APIs that judges answer at, each with its own path, key, encoding and words."""
