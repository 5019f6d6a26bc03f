"""Multiple-choice sets answered from captions."""
