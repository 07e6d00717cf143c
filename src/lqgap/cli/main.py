"""The `lqgap` command and its exit codes; heavy imports wait until a command runs."""

import codecs
import io
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from lqgap.errors import (
    CorruptFileError,
    InvalidArgumentError,
    LqgapError,
    LqgapWarning,
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

EXPONENTS = dict(zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True))
PLAIN = {"…": "...", "±": "+-", "–": "-", "−": "-", "·": "*", "∞": "inf", "µ": "u", **EXPONENTS}

app = typer.Typer(
    name="lqgap",
    help="Train in simulation, know the gap.",
    epilog="Try `lqgap init study.toml`, `lqgap check study.toml`, `lqgap transfer study.toml -o results`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def read_output(text: str) -> Path:
    """The place of the output; an empty text, as of a variable that is not set, is none."""
    if text == "":
        raise typer.BadParameter("it is empty; the current folder is '.'")
    return Path(text)


Study = Annotated[
    Path | None, typer.Argument(help="A study file, as `lqgap init` writes (default: the built-in study).")
]
Policy = Annotated[Path, typer.Argument(help="A policy file written by `transfer` or `train`.")]
Folder = Annotated[
    Path,
    typer.Option("-o", "--output", parser=read_output, help="The folder; work that was stopped goes on."),
]
Method = Annotated[str, typer.Option(help="Which method, such as robust; see `lqgap init`.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Seed = Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="Use this seed instead of the study's.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Allow the study to import and run the Python function it names.")
]
Figures = Annotated[bool, typer.Option("--figures", help="Also write every figure as PNG and SVG.")]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="Also show how long short units of work took.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Show neither progress nor notes.")]


def main() -> None:
    """Run the command line; errors that a user can repair are one line on stderr and an exit code."""
    warnings.showwarning = _print_warning
    codecs.register_error("plain", _in_plain_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")
    try:
        app()
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (LqgapError, OSError, MemoryError) as error:
        from lqgap.cli.session import print_error

        print_error("there is not enough memory" if isinstance(error, MemoryError) else error)
        sys.exit(next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1))


@app.command()
def solve(
    plant: Annotated[
        Path | None,
        typer.Argument(help="A TOML file with the matrices A, B, C and optionally Q, R, W, V, S0, Qx, N."),
    ] = None,
    horizon: Annotated[
        int, typer.Option(min=0, help="Last step H of the finite-horizon optimum (steps 0..H).")
    ] = 200,
    dt: Annotated[
        float | None, typer.Option(help="Sample a plant in continuous time (A, B, intensity W) every dt.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the optimum of one plant: costs, gains and closed loop (default: a mass on a spring)."""
    from lqgap.cli.solve import print_optimum

    print_optimum(plant, horizon=horizon, dt=dt, as_json=as_json)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    figures: Figures = False,
) -> None:
    """Write the HTML page of a finished run again, from its record."""
    from lqgap.cli.report import run_report

    run_report(folder, figures=figures)


@app.command()
def plants(
    name: Annotated[str | None, typer.Argument(help="Describe this family.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the built-in families of plants with their parameters, or describe one of them."""
    from lqgap.cli.plants import print_plants

    print_plants(name, as_json=as_json)


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("study.toml"),
    schema: Annotated[
        bool, typer.Option("--schema", help="Write the JSON schema of studies instead.")
    ] = False,
) -> None:
    """Write a commented study to start from."""
    from lqgap.cli.init import write_example

    write_example(path, as_schema=schema)


@app.command()
def check(study: Study = None, trust: Trust = False, as_json: Json = False) -> None:
    """Audit the simulators of a study: which assumptions hold, and how to fix those that fail."""
    from lqgap.cli.check import run_check

    run_check(study, trust=trust, as_json=as_json)


@app.command()
def transfer(  # noqa: PLR0913, PLR0917
    study: Study = None,
    output: Folder = Path("lqgap-results"),
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: no training, no online learning, no bounds.")
    ] = False,
    seed: Seed = None,
    trust: Trust = False,
    as_json: Json = False,
    figures: Figures = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Train on simulators, evaluate on unseen plants, bracket the best possible gap: the main command."""
    from lqgap.cli.session import Progress
    from lqgap.cli.transfer import run_transfer

    progress = Progress(verbose=verbose, quiet=quiet)
    run_transfer(
        study,
        output,
        quick=quick,
        seed=seed,
        trust=trust,
        as_json=as_json,
        figures=figures,
        progress=progress,
    )


@app.command()
def train(
    study: Study = None,
    method: Method = "robust",
    output: Annotated[
        Path, typer.Option("-o", "--output", parser=read_output, help="The policy file to write.")
    ] = Path("policy.safetensors"),
    seed: Seed = None,
    trust: Trust = False,
) -> None:
    """Make the policy of one method of a study and save it."""
    from lqgap.cli.train import run_train

    run_train(study, output, method=method, seed=seed, trust=trust)


@app.command()
def evaluate(
    policy: Policy, study: Study = None, seed: Seed = None, trust: Trust = False, as_json: Json = False
) -> None:
    """Measure the gap of a saved policy on the real plants of a study."""
    from lqgap.cli.evaluate import run_evaluate

    run_evaluate(study, policy, seed=seed, trust=trust, as_json=as_json)


@app.command()
def certify(
    policy: Policy,
    study: Study = None,
    rollouts: Annotated[
        int | None,
        typer.Option(min=2, help="Rollouts of every plant (default: the study's, but enough for a limit)."),
    ] = None,
    seed: Seed = None,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Bracket the best possible worst gap over the ranges of a study by a lower bound and a saved policy."""
    from lqgap.cli.certify import run_certify

    run_certify(study, policy, rollouts=rollouts, seed=seed, trust=trust, as_json=as_json)


@app.command()
def adapt(
    study: Study = None,
    method: Method = "vtr",
    steps: Annotated[
        int | None,
        typer.Option(min=1, max=10_000_000, help="Number of steps (default: the study's horizon)."),
    ] = None,
    seed: Seed = None,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Run a method, such as LQG-VTR, on the first real plant of a study and report what it learned."""
    from lqgap.cli.adapt import run_adapt

    run_adapt(study, method=method, seed=seed, steps=steps, trust=trust, as_json=as_json)


@app.command()
def compare(  # noqa: PLR0913, PLR0917
    families: Annotated[
        list[str] | None,
        typer.Argument(help="Classes: built-in ones, such as 'dc_motor{points = 3}', or study files."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="A method, such as 'thompson{lazy = true}' (repeat for more; default: all)."),
    ] = None,
    horizon: Annotated[
        list[int] | None,
        typer.Option(min=10, max=10_000_000, help="Number of steps (repeat for more; default: 1000)."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=2, max=100_000, help="Runs on each real plant.")] = 20,
    output: Folder = Path("lqgap-compare"),
    processes: Annotated[int, typer.Option(min=1, max=1024, help="Number of processes on this machine.")] = 2,
    as_json: Json = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Run online methods on members of classes, on common noise: what each pays until it has learned."""
    from lqgap.cli.compare import run_compare
    from lqgap.cli.session import Progress

    run_compare(
        families or [],
        output,
        methods=method or [],
        horizons=horizon or [1_000],
        seeds=seeds,
        processes=processes,
        as_json=as_json,
        progress=Progress(verbose=verbose, quiet=quiet),
    )


@app.command()
def sweep(  # noqa: PLR0913, PLR0917
    study: Study = None,
    over: Annotated[
        list[str] | None,
        typer.Option(help="A key and its values, such as horizon=50,100 (repeat for more keys)."),
    ] = None,
    output: Folder = Path("lqgap-sweep"),
    processes: Annotated[int, typer.Option(min=1, max=1024, help="Number of processes on this machine.")] = 2,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")] = None,
    dask_local: Annotated[
        bool, typer.Option("--dask-local", help="Use a Dask cluster on this machine.")
    ] = False,
    trust: Trust = False,
    as_json: Json = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Compute a grid of studies over any keys, by several processes or a Dask cluster."""
    from lqgap.cli.session import Progress
    from lqgap.cli.sweep import Where, run_sweep

    run_sweep(
        study,
        output,
        over=over or [],
        where=Where(processes, scheduler, dask_local),
        trust=trust,
        as_json=as_json,
        progress=Progress(verbose=verbose, quiet=quiet),
    )


def _in_plain_letters(error: Any) -> tuple[str, int]:
    """Plain letters in place of those that an output does not have, such as "+-" for "±" in ASCII."""
    letters = error.object[error.start : error.end]
    return "^" * (letters[0] in EXPONENTS) + "".join(PLAIN.get(each, "?") for each in letters), error.end


def _print_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    from lqgap.cli.session import printable

    kind = "note" if issubclass(category, LqgapWarning) else category.__name__
    print(f"{kind}: {printable(str(message))}", file=sys.stderr)


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
