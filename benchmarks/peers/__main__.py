"""Measure peers in one run and write their sections into docs/benchmarks.md: `python -m benchmarks.peers`.

Topics may be named. Identification also takes measured records, columns of the CSV files of a folder:

    python -m benchmarks.peers identification --records FOLDER --inputs u --outputs y,z --name "A rig"
"""

import argparse
import os
import platform
from functools import partial
from pathlib import Path

import lqgap
from benchmarks.peers import control, filters, identification, peer, riccati, training
from benchmarks.timing import PAGE, put

TOPICS = {
    "riccati": riccati.run,
    "control": control.run,
    "identification": identification.run,
    "filters": filters.run,
    "training": training.run,
}


def main() -> None:
    """Measure, print, write."""
    options = _parser().parse_args()
    lqgap.enable_x64()
    topics = dict(TOPICS)
    if options.records is not None:
        topics["identification"] = partial(identification.run, measured=_measured(options))
    if not options.topics:
        _put(introduction())
    for name in options.topics or TOPICS:
        _put(topics[name]())


def introduction() -> str:
    """What was measured, with what and where."""
    versions = (
        f"Python {platform.python_version()}, {peer.name('jax')}, {peer.name('numpy')}, {peer.name('lqgap')}"
    )
    return (
        f"## Peers\n\nThe sections below are written by `make bench-peers` ({versions}; "
        f"{platform.machine()}, {os.cpu_count()} cores, which other work may have shared). It installs the "
        "peers, pinned in requirements/peers.txt, into an environment of their own. Ours and theirs are "
        "measured in one run, after compilation, each at its best number of BLAS threads: times are the "
        "shortest of several rounds, by the wall or in CPU seconds of all threads, whichever is less, and a "
        "ratio is theirs over ours. For rollouts against NumPy and Gymnasium see *Closed-loop rollouts*. "
        "Julia's packages are not measured: from PyPI they cannot be had without downloads at run time.\n"
    )


def _put(section: str) -> None:
    print(section, flush=True)
    put(PAGE, section)


def _measured(options: argparse.Namespace) -> identification.Measured:
    return identification.Measured(
        options.records,
        inputs=options.inputs.split(","),
        outputs=options.outputs.split(","),
        order=options.order,
        every=options.every,
        name=options.name,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("topics", nargs="*", choices=list(TOPICS), help="all, if left out")
    parser.add_argument("--records", type=Path, help="folder of CSV files, instead of known plants")
    parser.add_argument("--inputs", default="u", help="columns, with commas")
    parser.add_argument("--outputs", default="y", help="columns, with commas")
    parser.add_argument("--order", type=int, default=4, help="states of the models")
    parser.add_argument("--every", type=int, default=1, help="take every so many rows")
    parser.add_argument("--name", default="measured records", help="for the title, with its reference")
    return parser


if __name__ == "__main__":
    main()
