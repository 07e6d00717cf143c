"""`lqgap plants`: the built-in families, their parameters and what is known of their nominal member."""

import inspect
import json
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import lqgap
from lqgap.simulators.plants import catalogue
from lqgap.systems import solve


def print_plants(*, as_json: bool) -> None:
    """List all families."""
    lqgap.enable_x64()
    records = [_describe(name) for name in catalogue()]
    if as_json:
        print(json.dumps(records, indent=2))  # noqa: T201
        return
    table = Table(title="Built-in families", title_justify="left", show_lines=True)
    table.add_column("family")
    table.add_column("uncertain by default")
    table.add_column("n, m, p", justify="right")
    table.add_column("rho(A)", justify="right")
    table.add_column("J", justify="right")
    for record in records:
        sizes = f"{record['states']}, {record['inputs']}, {record['outputs']}"
        name = f"[bold]{record['name']}[/]\n{escape(record['summary'])}"
        radius, cost = f"{record['spectral_radius']:.4f}", f"{record['J']:.6g}"
        table.add_row(name, escape("\n".join(record["uncertain"])), sizes, radius, cost)
    Console().print(table)


def _describe(name: str) -> dict[str, Any]:
    function = catalogue()[name]
    family = function()
    plant = family.nominal()
    return {
        "name": name,
        "summary": (inspect.getdoc(function) or "").split("\n")[0],
        "uncertain": [str(parameter) for parameter in family.parameters],
        "keywords": list(inspect.signature(function).parameters),
        "states": plant.num_states,
        "inputs": plant.num_inputs,
        "outputs": plant.num_outputs,
        "spectral_radius": float(np.max(np.abs(np.linalg.eigvals(plant.A)))),
        "J": float(solve(plant).J),
    }
