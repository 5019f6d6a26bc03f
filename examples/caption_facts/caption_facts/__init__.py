"""A toy benchmark of captions: facts of a caption against a reference, and the other way round."""
