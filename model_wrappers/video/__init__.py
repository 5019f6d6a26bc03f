"""Reading clips: frames, times, limits."""
