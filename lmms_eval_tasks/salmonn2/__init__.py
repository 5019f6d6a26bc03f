"""video-SALMONN 2's test set: events that captions miss, mistake or invent."""
