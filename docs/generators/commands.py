"""The commands with their arguments and options, and what they exit with."""

import typer

from lqgap import errors
from lqgap.cli.main import EXIT_CODES, app

NO_PREFIX = ("", None, False, [])


def describe_commands() -> str:
    """A section for every command."""
    return "\n\n".join(_describe(name, each) for name, each in typer.main.get_command(app).commands.items())


def list_exit_codes() -> str:
    """What each number means."""
    by_code: dict[int, list[str]] = {}
    for kind, code in EXIT_CODES.items():
        by_code.setdefault(code, []).append(f"`{kind.__name__}`: {_first_line(kind)}")
    told = {
        0: ["done"],
        1: [
            "a file that cannot be read or written, not enough memory, or an error without a code of its own"
        ],
        2: ["the command line itself: an unknown option, a missing argument"],
        **by_code,
        130: ["interrupted; `transfer`, `compare` and `sweep` go on where they were when run again"],
    }
    told[4].append("a study of which no method holds on all plants that were tried: the page says where")
    rows = [f"| {code} | {'<br>'.join(meanings)} |" for code, meanings in sorted(told.items())]
    return "\n".join(["| exit code | when |", "|---|---|", *rows])


def _describe(name, command) -> str:
    parameters = [each for each in command.params if each.name != "help"]
    arguments = [f"[{each.name.upper()}]" for each in parameters if each.param_type_name == "argument"]
    rows = [f"| {_names(each)} | {each.help or ''} | {_default(each)} |" for each in parameters]
    usage = " ".join(["lqgap", name, *arguments, "[OPTIONS]"])
    table = ["| argument or option | meaning | default |", "|---|---|---|", *rows]
    return "\n".join([f"## lqgap {name}", "", command.help or "", "", f"    {usage}", "", *table])


def _names(parameter) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    return ", ".join(f"`{name}`" for name in parameter.opts)


def _default(parameter) -> str:
    return "" if parameter.default in NO_PREFIX else f"`{parameter.default}`"


def _first_line(kind: type[errors.LqgapError]) -> str:
    return (kind.__doc__ or "").partition("\n")[0]
