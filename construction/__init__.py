"""Benchmark construction: questions about a folder of clips, by the pipelines of the papers."""
