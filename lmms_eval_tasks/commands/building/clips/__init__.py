"""Long videos cut at scene changes into clips of a few seconds that move."""
