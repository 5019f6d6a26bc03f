"""``score``: captions of any number of clips, in Parquet files, scored shard by shard."""
