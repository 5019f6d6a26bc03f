"""DREAM-1K: events of captions and references of 1,000 clips in five sources."""
