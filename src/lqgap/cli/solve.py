"""`lqgap solve`: the optimum of one plant as tables or JSON."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import lqgap
from lqgap.cli.session import new_table, require_device, shown
from lqgap.errors import InvalidArgumentError, did_you_mean
from lqgap.experiments.parsing import MAX_SIZE
from lqgap.experiments.toml import require_modest
from lqgap.files import read_bytes
from lqgap.systems import LQG, FiniteOptimum, Optimum, discretize, solve, solve_finite, zero_order_hold
from lqgap.systems.lqg import EXTENSIONS, MATRICES


def print_optimum(path: Path | None, *, horizon: int, dt: float | None, as_json: bool) -> None:
    """Solve the plant of a file, or the built-in one, and print what was found.

    Args:
        dt: how often to sample the plant, if the file is in continuous time.
    """
    lqgap.enable_x64()
    require_device()
    if dt is not None and path is None:
        raise InvalidArgumentError(
            "--dt samples the plant of a file in continuous time, and there is no file"
        )
    plant = read_plant(path) if path else mass_on_a_spring()
    plant = plant if dt is None else discretize(plant, dt=dt)
    optimum, finite = solve(plant), solve_finite(plant, horizon=horizon)
    if as_json:
        print(json.dumps(_as_record(optimum, finite, horizon=horizon), indent=2))
    else:
        title = path.name if path else "mass on a spring, position measured every 0.3 s"
        _print_tables(title, plant, optimum, finite)


def read_plant(path: Path) -> LQG:
    """The plant whose matrices a TOML file lists."""
    try:
        text = read_bytes(path, limit=MAX_SIZE).decode("utf-8-sig")
        require_modest(text)
        matrices = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # all that TOML and UTF-8 raise
        raise InvalidArgumentError(f"{path} is not a TOML file: {error}") from None
    for key in matrices:
        if key not in (known := (*MATRICES, *EXTENSIONS)):
            hint = did_you_mean(key.upper(), known)
            raise InvalidArgumentError(f"{path} has the key {key!r}, expected {', '.join(known)}{hint}")
    for key in MATRICES[:3]:
        if key not in matrices:
            raise InvalidArgumentError(f"{path} has no matrix {key}: A, B and C are needed")
    return LQG(**matrices)


def mass_on_a_spring() -> LQG:
    """Mass 1, stiffness 2.25, damping 0.5, force gain 3."""
    A, B = zero_order_hold([[0.0, 1.0], [-2.25, -0.5]], [[0.0], [3.0]], dt=0.3)
    return LQG(A, B, [[1.0, 0.0]], R=[[0.1]])


def _as_record(optimum: Optimum, finite: FiniteOptimum, *, horizon: int) -> dict[str, Any]:
    names = ("J", "P", "K", "Sigma", "L", "F", "S", "spectral_radius", "residual")
    record = {name: np.asarray(getattr(optimum, name)).tolist() for name in names}
    return {**record, "horizon": horizon, "value": float(finite.value)}


def _print_tables(title: str, plant: LQG, optimum: Optimum, finite: FiniteOptimum) -> None:
    steps = len(finite.P)
    unavoidable = float(np.trace(plant.Q @ plant.V))
    costs = new_table(f"Optimum: {title}", "quantity", ">value", "meaning")
    rows = (
        ("J", optimum.J, "optimal cost of a step, in the long run"),
        ("tr(QV)", unavoidable, "of it, measurement noise that no policy avoids"),
        ("V*", finite.value, f"optimal cost of steps 0..{steps - 1}"),
        ("V* / steps", finite.value / steps, "the same, of a step"),
        ("rho(A)", np.max(np.abs(np.linalg.eigvals(plant.A))), "spectral radius of the plant alone"),
        ("rho", optimum.spectral_radius, "of the closed loop: filter and controller"),
        ("residual", optimum.residual, "of the Riccati equations, relative"),
    )
    for name, value, meaning in rows:
        costs.add_row(name, f"{float(value):.6g}", meaning)
    console = Console()
    gains = new_table("Gains", "gain", "use and rows", show_lines=True)
    uses = ("u = -K xhat", "xhat = predicted + L (y - C predicted)")
    for name, gain, use in zip("KL", (optimum.K, optimum.L), uses, strict=True):
        rows = np.array2string(np.asarray(gain), precision=6, max_line_width=console.width - 12)
        gains.add_row(name, shown(use, *rows.splitlines()))
    console.print(costs, gains, sep="\n")
