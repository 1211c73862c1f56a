"""Benchmarks. Each compares what the service does with the practical limit, in one run, as a ratio."""
