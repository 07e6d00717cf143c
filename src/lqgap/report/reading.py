"""The finished record of a run, from the folder of the run."""

from pathlib import Path

import pydantic

from lqgap.errors import CorruptFileError, InvalidArgumentError
from lqgap.experiments.record import Record

RECORD = "record.json"


def read_record(folder: Path) -> Record:
    """What the run in this folder found."""
    path = folder / RECORD
    if not path.is_file():
        raise InvalidArgumentError(f"{folder} holds no {RECORD}: `lqgap transfer -o {folder}` makes one")
    try:
        return Record.model_validate_json(path.read_bytes())
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise CorruptFileError(
            f"{path} is not a record: {first['msg']}{f' at {place}' if place else ''}"
        ) from error
