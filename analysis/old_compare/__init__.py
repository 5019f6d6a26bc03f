"""The subcommand ``compare``: which captioner is better, by how much, and whether that is sure."""
