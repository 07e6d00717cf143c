"""Run all benchmarks, print their tables and write them to docs/benchmarks.md."""

import pathlib
import platform

import jax

import lqgap
from benchmarks.adaptive import vtr
from benchmarks.evaluation import rollouts
from benchmarks.linalg import riccati
from benchmarks.simulators import audit
from benchmarks.theory import certificates
from benchmarks.training import families, oracles, prior

BENCHMARKS = (riccati, audit, rollouts, oracles, families, prior, certificates, vtr)
PAGE = pathlib.Path(__file__).parent.parent / "docs" / "benchmarks.md"


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
    PAGE.write_text("\n".join(sections))


if __name__ == "__main__":
    main()
