"""The subcommand ``score``: scores of captions that stand in Parquet files."""
