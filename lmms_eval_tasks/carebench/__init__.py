"""CaReBench: events and static objects of detailed captions."""
