"""The units of work of one study: looked up in a store, or computed and kept there."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lqgap.errors import CorruptFileError, LqgapError, LqgapWarning, StorageError, warn
from lqgap.experiments.plants import Plants
from lqgap.experiments.record import Part
from lqgap.experiments.store import Finished, Store, Unit
from lqgap.experiments.study import Study

Progress = Callable[[str, float | None], None]  # name of a unit; seconds it took, None when it begins
Notice = Callable[[str], None]  # a line that a user should see
Found = TypeVar("Found", bound=Part)


@dataclass
class Work:
    """What is known of the units of a study, and what they said.

    Args:
        store: None if nothing is kept.
    """

    plants: Plants
    store: Store | None = None
    progress: Progress | None = None
    notice: Notice = warn
    timings: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # methods that failed, and why

    @property
    def study(self) -> Study:
        """The study that the units belong to."""
        return self.plants.study

    def unit(self, name: str, configuration: Mapping[str, Any]) -> Unit:
        """A unit that depends on the class, the seed, and this."""
        of_class = self.study.model_dump(include={"plant", "cost", "grid"})
        content = {"plants": self.plants.fingerprint, "added": self.plants.added}
        return Unit(name, {**of_class, **content, **configuration}, seed=self.study.seed)

    def do(
        self,
        kind: type[Found],
        name: str,
        configuration: Mapping[str, Any],
        compute: Callable[[Unit], Found],
        *,
        anew: bool = False,
    ) -> Found:
        """The result of a unit, which is of this kind.

        Args:
            anew: whether to compute it even if it is known.
        """
        unit = self.unit(name, configuration)
        known = None if self.store is None or anew else self.store.get(unit)
        if known is None or known.error is not None:
            self._tell(name, None)
            start = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", LqgapWarning)
                value = compute(unit)
            told = [str(w.message) for w in caught if issubclass(w.category, LqgapWarning)]
            result = {"value": value.model_dump(mode="json"), "warnings": told}
            known = Finished(result, None, time.perf_counter() - start)
            if self.store is not None:
                self.store.put(unit, known, replace=anew)
        self._tell(name, known.seconds)
        self.timings[name] = known.seconds
        self.warnings += [text for text in known.result["warnings"] if text not in self.warnings]
        return kind.model_validate(known.result["value"])  # what is computed and what is found are the same

    def attempt(self, method: str, compute: Callable[[], Any]) -> Any:
        """What a method comes to; None if it fails, which leaves it out and the others unharmed."""
        try:
            return compute()
        except (CorruptFileError, StorageError):  # trouble of the run, not of the method
            raise
        except LqgapError as error:
            self.left_out[method] = str(error)
            return None

    def _tell(self, name: str, seconds: float | None) -> None:
        if self.progress is not None:
            self.progress(name, seconds)
