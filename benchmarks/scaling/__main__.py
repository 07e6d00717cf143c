"""Measure how cost grows, and put these sections alone into docs/benchmarks.md.

`python -m benchmarks.scaling` for all of them; `python -m benchmarks.scaling memory limits` for some.
"""

import sys

import lqgap as lg
from benchmarks.scaling import cluster, dimension, horizon, limits, members, memory
from benchmarks.timing import PAGE, put

PARTS = (dimension, members, horizon, memory, limits, cluster)

if __name__ == "__main__":
    lg.enable_x64()
    for part in PARTS:
        if part.__name__.split(".")[-1] in (sys.argv[1:] or [each.__name__.split(".")[-1] for each in PARTS]):
            put(PAGE, part.run())
