"""AuroraCap: its model, checkpoint and token merging."""
