"""Videos generated from captions beside their originals, as VidCapBench verifies captioners."""
