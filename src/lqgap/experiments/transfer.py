"""The main job: from a family of simulators to a policy for the real plant, and how good it is.

The result of every unit of work (see `pipeline`) is stored when it is done. A run that was killed goes on
from there and ends with the same record; a finished one is read back without loading JAX.
"""

import json
from pathlib import Path

import pydantic

from lqgap.errors import CorruptFileError, InvalidArgumentError
from lqgap.experiments.parsing import Source
from lqgap.experiments.record import Record
from lqgap.experiments.store import Finished, Store
from lqgap.experiments.study import Study
from lqgap.experiments.work import Progress, Work, versions

STORE, RECORD, STUDY = "store.sqlite", "record.json", "study.toml"


def transfer(
    study: Study, source: Source, folder: str | Path, *, trust: bool = False, progress: Progress | None = None
) -> Record:
    """Compute the record of a study in a folder, or what of it is missing there.

    Args:
        trust: whether the study may name a Python function, which is then run.
    """
    folder = Path(folder)
    store = Store(folder / STORE)
    work = Work(study, source, store, progress)
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


def _compute(work: Work, folder: Path, *, trust: bool) -> Record:
    from lqgap.experiments.assembly import assemble
    from lqgap.experiments.pipeline import compute
    from lqgap.experiments.plants import Plants

    results = compute(work, Plants(work.study, work.source, trust=trust), folder)
    return assemble(work.study, results, warnings=work.warnings, timings=work.timings, versions=versions())


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
