"""The main job: from a family of simulators to a policy for the real plant, and how good it is.

The result of every unit of work (see `pipeline`) is stored when it is done. A run that was killed goes on
from there and ends with the same record; a finished one is read back without loading JAX or running any code
that the study names. What it is made from is verified first: files of the study, and policies of the run.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pydantic

from lqgap.errors import CorruptFileError, InvalidArgumentError, warn
from lqgap.experiments.parsing import Source
from lqgap.experiments.plant_tables import PythonPlant
from lqgap.experiments.provenance import checksum, files_of, versions
from lqgap.experiments.record import Part, Record
from lqgap.experiments.store import Finished, Store, Unit
from lqgap.experiments.study import Study
from lqgap.files import read_bytes, require_folder, write_if_changed

STORE, RECORD, STUDY = "store.sqlite", "record.json", "study.toml"


class Kept(Part):
    """A finished run in the store."""

    record: Record
    policies: dict[str, str]  # checksums of policy files


def transfer(
    study: Study,
    source: Source,
    folder: str | Path,
    *,
    trust: bool = False,
    progress: Callable[[str, float | None, tuple[str, ...]], None] | None = None,
    notice: Callable[[str], None] = warn,
    show: Callable[[Record, bool], None] = lambda *_: None,
) -> Record:
    """Compute the record of a study in a folder, or what of it is missing there.

    Args:
        trust: whether the study may name a Python function, which is then run.
        progress: told the name of every unit, the seconds it took (None when it begins) and what is left.
        notice: told what a user should know, a line at a time.
        show: told the record without bounds before these are computed, and the whole one (True) before files
            are written.
    """
    folder = Path(folder)
    store = Store(folder / STORE)
    whole = Unit("record", study.model_dump(exclude={"title"}), seed=study.seed)
    can_make = os.access(folder, os.W_OK) and (trust or not isinstance(study.plant, PythonPlant))
    record = _finished(store, whole, source, notice, can_make=can_make)
    if record is None:
        require_folder(folder)
        if store.has_other_code():
            notice(f"{store.path} has results of another version of lqgap, which are kept, not used")
        work = _work(study, source, store, trust=trust, progress=progress, notice=notice)
        record = _compute(work, whole, folder, show)
    else:
        record = record.model_copy(update={"title": study.heading, "study": study.to_toml()})
        show(record, True)
    if os.access(folder, os.W_OK):  # a finished run can be looked at where nothing can be written
        write_if_changed(folder / STUDY, record.study.encode())
        write_if_changed(folder / RECORD, f"{record.model_dump_json(indent=1)}\n".encode())
    return record


def load_record(folder: str | Path) -> Record:
    """The record of a finished run."""
    path = Path(folder) / RECORD
    try:
        content = read_bytes(path)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{error} (`lqgap transfer -o {folder}` makes it)") from None
    try:
        return Record.model_validate_json(content)
    except pydantic.ValidationError as error:
        raise _damaged(path, error) from None


def _finished(
    store: Store, whole: Unit, source: Source, notice: Callable[[str], None], *, can_make: bool
) -> Record | None:
    """The record of a run in the store, if nothing that it rests on has changed.

    Args:
        can_make: whether a policy that is gone can be made again; if not, the rest is still shown.
    """
    unit, changed = store.find(whole, source.folder)
    if changed is not None:
        notice(f"{source.folder / changed} has changed since the study was computed: it is computed again")
    known = None if unit is None else store.get(unit)
    if known is None or known.error is not None:
        return None
    try:
        kept = Kept.model_validate(known.result)
    except pydantic.ValidationError as error:
        raise _damaged(store.path, error) from None
    folder = store.path.parent
    spoiled = [file for file, expected in kept.policies.items() if checksum(folder / file) != expected]
    if spoiled and can_make:
        return None  # each is looked at again, and made again, where policies are made
    for file in spoiled:
        notice(f"{folder / file} is missing or was changed")
    return kept.record


def _work(study: Study, source: Source, store: Store, *, trust: bool, **told: Any) -> Any:
    from lqgap.experiments.plants import Plants
    from lqgap.experiments.work import Work

    return Work(Plants(study, source, trust=trust), store, **told)


def _compute(work: Any, whole: Unit, folder: Path, show: Callable[[Record, bool], None]) -> Record:
    from lqgap.experiments.assembly import Results, assemble
    from lqgap.experiments.pipeline import compute

    def record_of(results: Results) -> Record:
        return assemble(
            work.study, results, warnings=work.warnings, timings=work.timings, versions=versions()
        )

    results = compute(work, folder, lambda first: show(record_of(first), False))
    record = record_of(results)
    show(record, True)
    trained = [each.trained for each in results.methods.values()]
    policies = {each.file: each.checksum for each in trained if each.file and each.checksum}
    kept = Kept(record=record, policies=policies).model_dump(mode="json")
    unit = replace(whole, files=files_of(work.study, work.plants.source))
    work.store.put(unit, Finished(kept, None, sum(work.timings.values())), replace=True)
    return record


def _damaged(path: Path, error: pydantic.ValidationError) -> CorruptFileError:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return CorruptFileError(f"{path} holds no record: {place}: {first['msg']}")
