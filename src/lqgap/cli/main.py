"""The `lqgap` command and its exit codes; heavy imports wait until a command runs."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from lqgap.errors import (
    CorruptFileError,
    InvalidArgumentError,
    LqgapError,
    NotConvergedError,
    NotDetectableError,
    NotStabilizableError,
)
from lqgap.version import __version__

EXIT_CODES: dict[type[LqgapError], int] = {
    InvalidArgumentError: 3,
    NotStabilizableError: 3,
    NotDetectableError: 3,
    NotConvergedError: 4,
    CorruptFileError: 5,
}

app = typer.Typer(
    name="lqgap",
    help="Train in simulation, know the gap.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; errors that a user can repair are one line on stderr and an exit code."""
    try:
        app()
    except LqgapError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(1)


@app.command()
def solve(
    plant: Annotated[
        Path | None,
        typer.Argument(help="A TOML file with the matrices A, B, C and optionally Q, R, W, V, S0."),
    ] = None,
    horizon: Annotated[
        int, typer.Option(min=0, help="Last step H of the finite-horizon optimum (steps 0..H).")
    ] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Print the optimum of one plant: costs, gains and closed loop (default: a mass on a spring)."""
    from lqgap.cli.solve import print_optimum

    print_optimum(plant, horizon=horizon, as_json=as_json)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    figures: Annotated[
        bool, typer.Option("--figures", help="Write PNG and SVG of every figure, too.")
    ] = False,
) -> None:
    """Write the HTML page of a run again from its record."""
    from lqgap.cli.report import write_report

    for path in write_report(folder, figures=figures):
        typer.echo(path)


@app.command()
def plants(
    name: Annotated[str | None, typer.Argument(help="Describe this family.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the built-in families of plants with their parameters, or describe one of them."""
    from lqgap.cli.plants import print_plants

    print_plants(name, as_json=as_json)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lqgap {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
