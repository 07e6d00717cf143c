"""Benchmarks: every figure is a ratio to a reference that was measured in the same run."""
