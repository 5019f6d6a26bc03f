"""What a run shows while it goes on: the bar, trouble, and for how long it is waited for."""
