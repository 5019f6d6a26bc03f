"""From records to scores, intervals, files and the summary."""
