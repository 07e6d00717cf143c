"""The rules of STYLE.md that neither ruff nor import-linter can check."""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent
MODULES = sorted((ROOT / "src" / "lqgap").rglob("*.py"))
MAX_LINES = 400
RELATION = re.compile(r" (?:=|<=|>=|:=) ")
TORN = re.compile(r"(?: (?:=|<=|>=|:=|<|>|\+|-|/)$)|(?:^(?:=|<=|>=|:=|<|>|\+|/) )")
WORD = re.compile(r"[A-Za-z][a-z'-]{2,}")
NO_PROSE = {"and", "cost", "delta", "det", "eps", "exp", "gamma", "inf", "kappa", "log", "max", "min", "rho"}
NO_PROSE |= {"sqrt", "sum", "sup", "Delta", "Phi", "Sigma"}


def offenders(is_wrong):
    """The modules that a predicate of path and text finds wrong."""
    return [str(path.relative_to(ROOT)) for path in MODULES if is_wrong(path, path.read_text())]


def test_a_module_opens_with_what_it_is():
    assert not offenders(lambda _, text: not ast.get_docstring(ast.parse(text)))


def test_a_module_stays_short():
    assert not offenders(lambda _, text: len(text.splitlines()) > MAX_LINES)


def is_stray_equation(line):
    """Whether a line of a docstring is an equation, or ends or begins within one, and is not indented."""
    if line.startswith("    "):
        return False
    words = {token.strip("(,.;:)") for token in line.split()}
    has_prose = any(WORD.fullmatch(word) for word in words - NO_PROSE)
    return bool(TORN.search(line) or (RELATION.search(line) and not has_prose))


def test_displayed_equations_are_indented_and_others_stay_on_one_line():
    strays = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in MODULES
        for line in ast.get_docstring(ast.parse(path.read_text()), clean=False).splitlines()
        if is_stray_equation(line)
    ]
    assert not strays, "\n".join(strays)


def test_public_names_come_before_private_helpers():
    def is_mixed(_, text):
        private = [
            node.name.startswith("_")
            for node in ast.parse(text).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__")
        ]
        return private != sorted(private)

    assert not offenders(is_mixed)


def test_shape_checks_stay_on():
    assert not offenders(lambda _, text: "from __future__ import annotations" in text)


def test_global_options_stay_untouched():
    def sets_options(path, text):
        may = path.parent.name == "cli" or path.name == "__init__.py"
        return not may and re.search(r"jax\.config\.update", text)

    assert not offenders(sets_options)


def test_modules_are_imported_where_the_contracts_of_layers_see_it():
    """By a name in a string, only what a user's study names (`experiments.family`)."""
    assert offenders(lambda _, text: "import_module(" in text) == ["src/lqgap/experiments/family.py"]


def test_every_module_has_its_test_module():
    def is_untested(path, _):
        if path.name.startswith("__") or path.name in {"errors.py", "version.py"}:
            return False
        folder = ROOT / "tests" / path.relative_to(ROOT / "src" / "lqgap").parent
        return not (folder / f"test_{path.name}").exists()

    assert not offenders(is_untested)


def test_the_architecture_lists_every_module():
    page = (ROOT / "docs" / "architecture.md").read_text()

    def is_missing(path, _):
        name = ".".join(path.relative_to(ROOT / "src" / "lqgap").with_suffix("").parts)
        return (
            not name.startswith("cli.")
            and path.stem not in {"__init__", "__main__", "version"}
            and f"`{name}`" not in page
        )

    assert not offenders(is_missing)


def test_no_folder_or_module_is_a_drawer():
    drawers = {"utils", "util", "helpers", "common", "misc", "tools"}
    assert not offenders(lambda path, _: drawers & {path.stem, *path.relative_to(ROOT).parts})


def test_pins_name_no_index():
    for path in (ROOT / "requirements").glob("*.txt"):
        assert "://" not in path.read_text()
        assert "--" not in path.read_text()
