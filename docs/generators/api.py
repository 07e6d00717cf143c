"""The public names of a package with their signatures, docstrings, fields and examples."""

import ast
import functools
import importlib
import inspect
import re
import textwrap
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "reference" / "examples.md"
SECTION = re.compile(r"^## (\S+)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
QUOTE = "'"  # around the name of a class that its source has not defined yet
ARGUMENT = re.compile(r"    (\S[^:]*): (.*)")


@functools.cache
def describe_package(name: str) -> str:
    """All that `__all__` of a package lists, first functions, then classes; of lqgap itself what is its own."""
    package = importlib.import_module(name)
    things = {each: getattr(package, each) for each in _public(package)}
    things = {each: thing for each, thing in things.items() if callable(thing)}
    if name == "lqgap":
        things = {each: thing for each, thing in things.items() if _home(thing, each) == f"lqgap.{each}"}
    ordered = sorted(things, key=lambda each: (inspect.isclass(things[each]), each.lower()))
    return "\n\n".join(_describe(name, each, things[each]) for each in ordered)


def list_names(name: str = "lqgap") -> str:
    """The names at the top, with a line and a link for each."""
    package = importlib.import_module(name)
    rows = []
    for each in sorted(package.__all__, key=str.lower):
        thing = getattr(package, each)
        if callable(thing) and hasattr(thing, "__module__"):
            home = _home(thing, each)
            first = inspect.getdoc(thing).partition("\n")[0]
            rows.append(f"| {{py:obj}}`lg.{each} <{home}>` | {first.replace('|', chr(92) + '|')} |")
    return "\n".join(["| name | what it is |", "|---|---|", *rows])


@functools.cache
def read_examples() -> dict[str, str]:
    """Doctests by the full name of what they show."""
    return {name: body.strip() for name, body in SECTION.findall(EXAMPLES.read_text())}


def list_fields(thing) -> str:
    """The fields that a class declares, with their types and what stands beside them."""
    try:
        lines = textwrap.dedent(inspect.getsource(thing)).splitlines()
    except (OSError, TypeError):
        return ""
    rows = []
    for node in ast.parse("\n".join(lines)).body[0].body:
        if isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_"):
            comment = lines[node.end_lineno - 1].partition("  # ")[2]
            comment = "" if comment.startswith(("pyright", "noqa")) else comment
            cells = [f"`{ast.unparse(node.target)}`", f"`{_short(node.annotation)}`", comment]
            rows.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(["| field | type | meaning |", "|---|---|---|", *rows]) if rows else ""


def _public(package) -> list[str]:
    own = [name for name, thing in vars(package).items() if inspect.isclass(thing)]  # of `errors`
    return getattr(package, "__all__", own)


def _home(thing, name: str) -> str:
    """The package that lists a name: what users import it from."""
    for package in (".".join(thing.__module__.split(".")[:depth]) for depth in (2, 1)):
        if name in _public(importlib.import_module(package)):
            return f"{package}.{name}"
    return f"{thing.__module__}.{name}"


def _describe(package: str, name: str, thing) -> str:
    if not inspect.isclass(thing):
        kind, parts = "function", []
    elif issubclass(thing, Exception):
        return _directive("exception", f"{package}.{name}", _document(thing), depth=4)
    else:
        kind, parts = "class", [list_fields(thing), *_members(thing)]
    body = [_document(thing), read_examples().get(f"{package}.{name}", ""), *parts]
    return _directive(kind, f"{package}.{name}{_signature(thing)}", "\n\n".join(filter(None, body)), depth=4)


def _directive(kind: str, head: str, body: str, *, depth: int, options: str = "") -> str:
    fence = ":" * depth
    return f"{fence}{{py:{kind}}} {head}\n{options}\n{body}\n{fence}"


def _signature(thing) -> str:
    """As it is written in the source; of classes without a constructor of their own, names and defaults."""
    function = inspect.unwrap(thing.__init__ if inspect.isclass(thing) else thing)
    try:
        node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError):
        node = None
    if not isinstance(node, ast.FunctionDef) or node.name != function.__name__:
        return _plain(thing)
    arguments = node.args
    if arguments.args and arguments.args[0].arg in {"self", "cls"}:
        arguments.args = arguments.args[1:]
    for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if len(ast.unparse(each)) > 60:
            each.annotation = None  # too long to help
    returns = (
        f" -> {ast.unparse(node.returns).strip(QUOTE)}" if node.returns and not inspect.isclass(thing) else ""
    )
    return f"({ast.unparse(arguments)}){returns if len(returns) < 70 else ''}".replace("\n", " ")


def _plain(thing) -> str:
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return "()"
    parts = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    text = str(inspect.Signature(parts))
    return text if "<" not in text and "0x" not in text else "(" + ", ".join(p.name for p in parts) + ")"


def _document(thing) -> str:
    """A docstring in Markdown: what stands under `Args:` becomes a list."""
    text, _, arguments = (inspect.getdoc(thing) or "").partition("\nArgs:\n")
    items: list[str] = []
    for line in arguments.splitlines():
        if found := ARGUMENT.fullmatch(line):
            items.append(f"- `{found[1]}`: {found[2]}")
        elif items and line.strip():
            items[-1] += f" {line.strip()}"
    return "\n".join([text.strip(), "", *items]).strip()


def _short(annotation: ast.expr) -> str:
    return re.sub(
        r"(?:eqx\.)?(?:AbstractVar|AbstractClassVar|ClassVar)\[(.*)\]", r"\1", ast.unparse(annotation)
    )


def _members(thing) -> list[str]:
    """Methods and properties, also of base classes that are not public themselves."""
    found = []
    for name in dir(thing):
        home = (
            next(base for base in thing.__mro__ if name in vars(base)) if not name.startswith("_") else None
        )
        if home is None or not home.__module__.startswith("lqgap") or _is_told_elsewhere(home, thing):
            continue
        member = vars(home)[name]
        function = getattr(member, "__func__", getattr(member, "fget", member))
        if not callable(function) or inspect.isclass(function) or not inspect.getdoc(function):
            continue
        is_property = isinstance(member, property) or not inspect.isroutine(inspect.unwrap(function))
        head = name if is_property else f"{name}{_signature(function)}"
        options = ":classmethod:" if isinstance(member, classmethod) else ""
        kind = "property" if is_property else "method"
        found.append(_directive(kind, head, _document(function), depth=3, options=options))
    return found


def _is_told_elsewhere(home: type, thing: type) -> bool:
    """Whether a public class, listed under its own name, has it."""
    return home is not thing and _home(home, home.__name__).count(".") == 2 and home.__module__.count(".") > 1
