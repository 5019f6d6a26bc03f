"""What takes questions out, and what chooses among those that are left."""
