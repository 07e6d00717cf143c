"""`lqgap plants`: the built-in families and their parameters; with a name, all that is known of one."""

import inspect
import json
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import lqgap
from lqgap.cli.session import new_table, require_device, shown
from lqgap.errors import InvalidArgumentError, did_you_mean
from lqgap.simulators.plants import FAMILIES
from lqgap.systems import solve


def print_plants(name: str | None, *, as_json: bool) -> None:
    """List all families, or describe one with its nominal member."""
    lqgap.enable_x64()
    require_device()
    if name is not None and name not in FAMILIES:
        hint = did_you_mean(name, FAMILIES)
        raise InvalidArgumentError(f"there is no family {name!r}{hint} (`lqgap plants` lists them)")
    records = [_summarize(each) for each in FAMILIES] if name is None else [_describe(name)]
    if as_json:
        print(json.dumps(records if name is None else records[0], indent=2))
    elif name is None:
        _print_list(records)
    else:
        _print_one(records[0])


def _summarize(name: str) -> dict[str, Any]:
    function = FAMILIES[name]
    return {
        "name": name,
        "summary": (inspect.getdoc(function) or "").split("\n")[0],
        "uncertain": [str(parameter) for parameter in function().parameters],
        "keywords": list(inspect.signature(function).parameters),
    }


def _describe(name: str) -> dict[str, Any]:
    plant = FAMILIES[name]().nominal()
    return {
        **_summarize(name),
        "documentation": inspect.getdoc(FAMILIES[name]),
        "states": plant.num_states,
        "inputs": plant.num_inputs,
        "outputs": plant.num_outputs,
        "spectral_radius": float(np.max(np.abs(np.linalg.eigvals(plant.A)))),
        "J": float(solve(plant).J),
    }


def _print_list(records: list[dict[str, Any]]) -> None:
    what = "what it is, and what is uncertain by default"
    table = new_table("Built-in families", "family", what, show_lines=True)
    table.columns[0].no_wrap = True
    for record in records:
        table.add_row(record["name"], shown(record["summary"], *record["uncertain"]))
    Console().print(table)


def _print_one(record: dict[str, Any]) -> None:
    table = Table(title=record["name"], title_justify="left", show_header=False)
    table.add_row("about", shown(*record["documentation"].splitlines()))
    table.add_row("uncertain by default", shown(*record["uncertain"]))
    table.add_row("states, inputs, outputs", f"{record['states']}, {record['inputs']}, {record['outputs']}")
    table.add_row("rho(A), nominal", f"{record['spectral_radius']:.6g}")
    table.add_row("J, nominal", f"{record['J']:.7g}")
    Console().print(table)
