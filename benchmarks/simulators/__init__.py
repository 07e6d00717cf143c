"""Benchmarks of the simulators layer."""
