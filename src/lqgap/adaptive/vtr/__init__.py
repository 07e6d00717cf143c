"""LQG-VTR, the algorithm of the paper."""
