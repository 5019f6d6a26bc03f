"""The captioner of the built-in sample: what moves where, by plain image processing."""
