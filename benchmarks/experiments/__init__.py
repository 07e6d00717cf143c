"""Benchmarks of whole studies."""
