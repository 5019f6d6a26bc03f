"""VidCapBench: captions for controllable text-to-video generation."""
