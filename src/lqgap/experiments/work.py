"""The units of work of one study: looked up in a store, or computed and kept there."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from lqgap.errors import CorruptFileError, LqgapError, LqgapWarning, StorageError, warn
from lqgap.experiments.budgets import allotted, limit
from lqgap.experiments.plants import Plants
from lqgap.experiments.results import Result
from lqgap.experiments.store import Finished, Store, Unit
from lqgap.experiments.study import Study
from lqgap.progress import release_memory

# Name of a unit; seconds it took, None when it begins; what is left after it.
Progress = Callable[[str, float | None, tuple[str, ...]], None]
Notice = Callable[[str], None]  # a line that a user should see
Found = TypeVar("Found", bound=Result)


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
    ahead: tuple[str, ...] = ()  # what is left after the unit that is computed

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
        compute: Callable[[Found | None], Found],
        *,
        anew: bool = False,
    ) -> Found:
        """The result of a unit, which is of this kind.

        Args:
            compute: told what a smaller budget has found, if one cut the unit.
            anew: whether to compute it even if it is known.
        """
        whole = self.unit(name, configuration)
        cut = replace(whole, configuration={**whole.configuration, "budget": limit(self.plants, name)})
        known = None if anew else self._known(whole) or self._known(cut)
        if known is None:
            held = None if self.store is None else self.store.held(whole)
            self._tell(name, None)
            start = time.perf_counter()
            folder = None if self.store is None else self.store.path.parent / "checkpoints" / whole.key[:16]
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", LqgapWarning)
                with allotted(self.plants, name, folder=folder) as budget:
                    value = compute(None if held is None else kind.model_validate(held["value"]))
            told = [str(w.message) for w in caught if issubclass(w.category, LqgapWarning)]
            if budget.is_cut:
                value = value.model_copy(update={"cut": True})
            result = {"value": value.model_dump(mode="json"), "warnings": told}
            known = Finished(result, None, time.perf_counter() - start)
            if self.store is not None:
                self.store.put(cut if budget.is_cut else whole, known, replace=anew)
            release_memory()
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

    def _known(self, unit: Unit) -> Finished | None:
        found = None if self.store is None else self.store.get(unit)
        return None if found is None or found.error is not None else found

    def _tell(self, name: str, seconds: float | None) -> None:
        if self.progress is not None:
            self.progress(name, seconds, self.ahead)
