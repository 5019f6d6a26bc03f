"""What a run would cost, before anything is sent."""
