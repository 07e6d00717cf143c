"""What results depend on besides the study: the code of lqgap, packages below it, files that a study names.

All of it is part of the key of a result (see `store`), so that results of other code or of other files are
never taken for those of these. Nothing is imported or run here to find out.
"""

import functools
import hashlib
import importlib.metadata
import importlib.resources
import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path

from lqgap.errors import InvalidArgumentError
from lqgap.experiments.parsing import Source
from lqgap.experiments.plant_tables import FilePlant, PythonPlant
from lqgap.experiments.study import Study
from lqgap.files import read_bytes
from lqgap.version import __version__

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy")
SHOWING = ("cli", "report")  # packages of lqgap that compute nothing


@functools.cache
def versions() -> dict[str, str]:
    """Of lqgap, Python and what results depend on."""
    found = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"lqgap": __version__, "python": platform.python_version(), **found}


@functools.cache
def code_hash() -> str:
    """Of lqgap's own sources, as far as they compute, and of the versions of the packages below them."""
    digest = hashlib.sha256(repr([versions()[name] for name in ("lqgap", *PACKAGES)]).encode())
    for name, content in sorted(_sources(importlib.resources.files("lqgap"), "")):
        digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()


def checksum(path: str | Path) -> str | None:
    """Of a file; None if there is none that can be read."""
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest()
    except InvalidArgumentError:
        return None


def files_of(study: Study, source: Source) -> dict[str, str]:
    """Checksums of the files that the plant of a study was made from, by path; after it was made.

    For a Python function these are its module and all that was imported from the folder of the study.
    """
    match study.plant:
        case FilePlant(file=name):
            paths = [name]
        case PythonPlant(python=target):
            paths = sorted(_module_files(target.partition(".")[0].partition(":")[0], source.folder))
        case _:
            paths = []
    return {path: checksum(source.folder / path) or "" for path in paths}


def first_changed(files: Mapping[str, str], folder: Path) -> str | None:
    """The first of these files that is not as it was, if any."""
    return next((name for name, known in files.items() if checksum(folder / name) != known), None)


def is_own(module_name: str, file: str | None, folder: Path) -> bool:
    """Whether a module was imported from this folder as from an entry of `sys.path`."""
    top = module_name.partition(".")[0]
    if file is None or top == "lqgap":
        return False
    path = Path(file).resolve()
    return path == folder / f"{top}.py" or path.is_relative_to(folder / top)


def _module_files(target: str, folder: Path) -> Iterator[str]:
    folder = folder.resolve()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        is_target = target != "lqgap" and name.partition(".")[0] == target
        if file is not None and (is_target or is_own(name, file, folder)):
            path = Path(file).resolve()
            yield str(path.relative_to(folder) if path.is_relative_to(folder) else path)


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir() and name not in SHOWING:
            yield from _sources(entry, f"{name}/")
        elif entry.name.endswith(".py"):
            yield name, entry.read_bytes()
