"""The built-in sample: clips rendered by code, with the benchmark files beside them."""
