"""One way to any language model: requests in, replies out."""
