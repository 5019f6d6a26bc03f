"""Videos generated from captions, compared with their originals as in VidCapBench."""
