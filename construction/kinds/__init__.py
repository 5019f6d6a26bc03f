"""Benchmarks that can be built, one module each."""
