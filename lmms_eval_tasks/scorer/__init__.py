"""Captions scored by a function call, with the tasks' prompts, readers, store and arithmetic."""
