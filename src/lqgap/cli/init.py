"""`lqgap init`: a commented study to start from, and the schema that editors complete it by."""

import json
from pathlib import Path

from lqgap.errors import InvalidArgumentError
from lqgap.experiments.parsing import example_text
from lqgap.experiments.study import schema


def write_example(path: Path, *, as_schema: bool) -> None:
    """Write the example; a file in that place stays."""
    text = json.dumps(schema(), indent=2) + "\n" if as_schema else example_text()
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidArgumentError(f"{path} exists already, and is not overwritten") from None
    except OSError as error:
        raise InvalidArgumentError(f"{path} cannot be written: {error.strerror}") from None
