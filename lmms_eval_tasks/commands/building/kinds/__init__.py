"""The benchmarks that can be built, a module each."""
