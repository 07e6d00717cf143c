"""Benchmarks of the theory layer."""
