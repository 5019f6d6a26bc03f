"""A toy benchmark of facts: what a caption says that is true, and what it leaves out."""
