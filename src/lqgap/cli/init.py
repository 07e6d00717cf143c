"""`lqgap init`: a commented study to start from, and the schema that editors complete it by."""

import json
import os
from pathlib import Path

from lqgap.errors import InvalidArgumentError
from lqgap.experiments.parsing import example_text
from lqgap.experiments.study import schema
from lqgap.files import write_bytes


def write_example(path: Path, *, as_schema: bool) -> None:
    """Write the example; a file in that place stays."""
    if os.path.lexists(path):
        raise InvalidArgumentError(f"{path} exists already, and is not overwritten")
    text = json.dumps(schema(), indent=2) + "\n" if as_schema else example_text()
    write_bytes(path, text.encode())
