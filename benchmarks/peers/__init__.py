"""lqgap beside other libraries: `make bench-peers`, or `python -m benchmarks.peers` with those at hand."""
