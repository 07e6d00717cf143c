"""The main job: from a family of simulators to a policy for the real plant, and how good it is.

    audit -> optimum -> policies (trained, with checkpoints) -> gaps on common noise -> gap against horizon
    -> runs -> lower bound and bounds -> record

Each is a unit of work whose result is stored when it is done. A run that was killed goes on from there and
ends with the same record; a finished one is read back without loading JAX.
"""

import importlib.metadata
import json
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic

from lqgap.errors import CorruptFileError, InvalidArgumentError, LqgapWarning
from lqgap.experiments.parsing import Source, content_hash
from lqgap.experiments.record import Record
from lqgap.experiments.store import Finished, Store, Unit
from lqgap.experiments.study import Adaptive, Study
from lqgap.version import __version__

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy")
STORE, RECORD, STUDY = "store.sqlite", "record.json", "study.toml"

Progress = Callable[[str, float | None], None]  # name of a unit; seconds it took, None when it begins


def transfer(
    study: Study, source: Source, folder: str | Path, *, trust: bool = False, progress: Progress | None = None
) -> Record:
    """Compute the record of a study in a folder, or what of it is missing there.

    Args:
        trust: whether the study may name a Python function, which is then run.
    """
    folder = Path(folder)
    store = Store(folder / STORE)
    work = _Work(study, source, store, progress or _silent)
    whole = work.unit("record", study.model_dump(exclude={"title": True}))
    known = store.get(whole)
    if known is not None and known.error is None:
        record = _read(json.dumps(known.result), store.path)
    else:
        record = _compute(work, folder, trust=trust)
        seconds = sum(work.timings.values())
        work.keep(whole, Finished(record.model_dump(mode="json"), None, seconds))
    _write_if_changed(folder / STUDY, study.to_toml())
    _write_if_changed(folder / RECORD, record.model_dump_json(indent=1) + "\n")
    return record


def load_record(folder: str | Path) -> Record:
    """The record of a finished run."""
    path = Path(folder) / RECORD
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(
            f"{path} cannot be read: {error.strerror} (`lqgap transfer -o {folder}` makes it)"
        ) from None
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"{path} is damaged: {error}") from None
    return _read(text, path)


def versions() -> dict[str, str]:
    """Of lqgap, Python and what results depend on."""
    found = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"lqgap": __version__, "python": platform.python_version(), **found}


@dataclass
class _Work:
    """The units of one study: looked up, or computed and kept."""

    study: Study
    source: Source
    store: Store
    progress: Progress
    results: dict[str, Any] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def unit(self, name: str, configuration: dict[str, Any]) -> Unit:
        """A unit that depends on the class, the seed, and this."""
        of_class = self.study.model_dump(include={"plant", "cost", "grid"})
        content = content_hash(self.study, self.source)
        return Unit(name, {**of_class, "content": content, **configuration}, seed=self.study.seed)

    def do(self, name: str, configuration: dict[str, Any], compute: Callable[[Unit], Any]) -> Any:
        """The result of a unit."""
        unit = self.unit(name, configuration)
        known = self.store.get(unit)
        if known is None or known.error is not None:
            self.progress(name, None)
            start = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", LqgapWarning)
                value = compute(unit)
            told = [str(w.message) for w in caught if issubclass(w.category, LqgapWarning)]
            # As it will be read: what is computed and what is found must not differ.
            result = json.loads(json.dumps({"value": value, "warnings": told}))
            known = Finished(result, None, time.perf_counter() - start)
            self.keep(unit, known)
        self.progress(name, known.seconds)
        self.results[name], self.timings[name] = known.result["value"], known.seconds
        self.warnings += [text for text in known.result["warnings"] if text not in self.warnings]
        return known.result["value"]

    def keep(self, unit: Unit, finished: Finished) -> None:
        self.store.put(unit, finished, versions=versions(), precision="float64")


def _compute(work: _Work, folder: Path, *, trust: bool) -> Record:
    from lqgap.experiments import units
    from lqgap.experiments.assembly import assemble

    study = work.study
    workspace = units.Workspace(study, work.source, folder, trust=trust)
    workspace.kept = work.do("audit", {}, lambda _: units.audit(workspace))["kept"]
    judged = study.model_dump(include={"horizon", "real"}) | {"map_points": study.evaluation.map_points}
    work.do("optimum", judged, lambda _: units.optimum(workspace))
    for name, options in study.methods.chosen.items():
        method = {"horizon": study.horizon, "options": options.model_dump()}
        if isinstance(options, Adaptive):
            _adapt(work, workspace, name, options, judged)
            continue
        policy = None if name == "oracle" else _policy(work, workspace, name, method)
        if policy is None and name != "oracle":
            continue
        rollouts = {"rollouts": study.evaluation.rollouts}
        work.do(
            f"gaps {name}", {**method, **judged, **rollouts}, lambda _, p=policy: units.judge(workspace, p)
        )
        chosen = {"trajectories": study.evaluation.trajectories}
        work.do(f"runs {name}", {**method, **judged, **chosen}, lambda _, p=policy: units.runs(workspace, p))
        if policy is not None and study.evaluation.horizons:
            looks = {**method, **rollouts, "horizons": study.evaluation.horizons}
            work.do(f"horizons {name}", looks, lambda _, p=policy: units.by_horizon(workspace, p))
    looks = {"horizon": study.horizon, "horizons": study.evaluation.horizons}
    work.do("lower bound", looks, lambda _: units.lower_bound(workspace))
    sheet = work.do("bounds", {"horizon": study.horizon}, lambda _: units.theory_bounds(workspace))
    if "missing" in sheet:
        work.warnings.append(f"there are no bounds: {sheet['missing']}")
    return assemble(
        workspace, work.results, warnings=work.warnings, timings=work.timings, versions=versions()
    )


def _adapt(work: _Work, workspace: Any, name: str, options: Adaptive, judged: dict[str, Any]) -> None:
    """A method that learns on the plant has no policy to keep, and a trace beside its gaps."""
    from lqgap.experiments import adaptation

    study = work.study
    looks = study.model_dump(include={"horizon", "evaluation"}) | judged
    configuration = {"options": options.model_dump(), **looks}
    units = {"gaps": adaptation.judge, "runs": adaptation.runs, "horizons": adaptation.adapt}
    for what, compute in units.items():
        work.do(f"{what} {name}", configuration, lambda _, compute=compute: compute(workspace, options))


def _policy(work: _Work, workspace: Any, name: str, method: dict[str, Any]) -> Any:
    """The policy of a method, trained or read back; None if the class has none of this kind."""
    from lqgap.experiments import units

    def train(unit: Unit) -> dict[str, Any]:
        return units.train(workspace, name, key=unit.key)

    made = work.do(f"train {name}", method, train)
    if "missing" in made:
        work.warnings.append(f"{name} is left out: {made['missing']}")
        return None
    if not (workspace.folder / made["file"]).exists():  # it was removed: train it again, to the same end
        train(work.unit(f"train {name}", method))
    return units.open_policy(workspace, made)


def _silent(name: str, seconds: float | None) -> None:
    del name, seconds


def _read(text: str, path: Path) -> Record:
    try:
        return Record.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise CorruptFileError(f"{path} holds no record: {place}: {first['msg']}") from None


def _write_if_changed(path: Path, text: str) -> None:
    if path.is_file() and path.read_bytes() == text.encode():
        return
    from lqgap.files import write_bytes

    write_bytes(path, text.encode())
