"""Benchmarks of the linalg layer."""
