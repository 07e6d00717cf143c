"""The units of work of one study: looked up in a store, or computed and kept there."""

import importlib.metadata
import platform
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lqgap.errors import LqgapWarning
from lqgap.experiments.parsing import Source, content_hash
from lqgap.experiments.record import Part
from lqgap.experiments.store import Finished, Store, Unit
from lqgap.experiments.study import Study
from lqgap.version import __version__

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy")

Progress = Callable[[str, float | None], None]  # name of a unit; seconds it took, None when it begins
Found = TypeVar("Found", bound=Part)


def versions() -> dict[str, str]:
    """Of lqgap, Python and what results depend on."""
    found = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"lqgap": __version__, "python": platform.python_version(), **found}


@dataclass
class Work:
    """What is known of the units of a study, and what they said.

    Args:
        store: None if nothing is kept.
    """

    study: Study
    source: Source
    store: Store | None = None
    progress: Progress | None = None
    timings: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def unit(self, name: str, configuration: Mapping[str, Any]) -> Unit:
        """A unit that depends on the class, the seed, and this."""
        of_class = self.study.model_dump(include={"plant", "cost", "grid"})
        content = content_hash(self.study, self.source)
        return Unit(name, {**of_class, "content": content, **configuration}, seed=self.study.seed)

    def do(
        self, kind: type[Found], name: str, configuration: Mapping[str, Any], compute: Callable[[Unit], Found]
    ) -> Found:
        """The result of a unit, which is of this kind."""
        unit = self.unit(name, configuration)
        known = None if self.store is None else self.store.get(unit)
        if known is None or known.error is not None:
            self.tell(name, None)
            start = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", LqgapWarning)
                value = compute(unit)
            told = [str(w.message) for w in caught if issubclass(w.category, LqgapWarning)]
            result = {"value": value.model_dump(mode="json"), "warnings": told}
            known = Finished(result, None, time.perf_counter() - start)
            self.keep(unit, known)
        self.tell(name, known.seconds)
        self.timings[name] = known.seconds
        self.warnings += [text for text in known.result["warnings"] if text not in self.warnings]
        return kind.model_validate(known.result["value"])  # what is computed and what is found are the same

    def keep(self, unit: Unit, finished: Finished) -> None:
        """Put a result into the store, if there is one."""
        if self.store is not None:
            self.store.put(unit, finished, versions=versions(), precision="float64")

    def tell(self, name: str, seconds: float | None) -> None:
        """A unit begins, or is done."""
        if self.progress is not None:
            self.progress(name, seconds)
