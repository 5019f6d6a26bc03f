"""The benchmarks as lmms-eval tasks: YAML, thin hooks, data and the command line."""
