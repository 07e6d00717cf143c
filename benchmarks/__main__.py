"""Run all benchmarks, print their tables and write them to docs/benchmarks.md."""

import platform

import jax

import lqgap
from benchmarks.adaptive import compare, faults, rivals, rivals_free, vtr
from benchmarks.evaluation import coverage, rollouts
from benchmarks.experiments import recommendation
from benchmarks.linalg import riccati
from benchmarks.scaling import cluster, dimension, horizon, limits, members, memory
from benchmarks.simulators import audit
from benchmarks.theory import brackets, certificates, growth, validity
from benchmarks.timing import PAGE, put
from benchmarks.training import families, oracles, prior

BENCHMARKS = (
    riccati,
    audit,
    rollouts,
    coverage,
    oracles,
    families,
    prior,
    certificates,
    brackets,
    growth,
    validity,
    vtr,
    rivals,
    compare,
    faults,
    rivals_free,
    recommendation,
    dimension,
    members,
    horizon,
    memory,
    limits,
    cluster,
)


def main() -> None:
    """Measure, print, write."""
    lqgap.enable_x64()
    versions = f"Python {platform.python_version()}, JAX {jax.__version__}, {jax.device_count()} CPU device"
    sections = [
        "# Benchmarks\n",
        f"Written by `make bench` ({versions}). Times vary between machines; ratios less so.\n",
    ]
    for benchmark in BENCHMARKS:
        section = benchmark.run()
        print(section, flush=True)
        sections.append(section)
    put(PAGE, "\n".join(sections))


if __name__ == "__main__":
    main()
