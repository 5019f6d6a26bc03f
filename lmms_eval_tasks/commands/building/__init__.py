"""``build``: a benchmark's files out of a folder of clips, by the pipelines of the papers."""
