"""Captions scored outside of lmms-eval: as functions, in Parquet files and on Ray."""
