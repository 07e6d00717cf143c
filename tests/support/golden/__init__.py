"""Reference values, computed by other means than the library."""

import json
import pathlib

FOLDER = pathlib.Path(__file__).parent
GOLDEN = json.loads((FOLDER / "lqg.json").read_text())
