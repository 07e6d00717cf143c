"""The rules of STYLE.md that neither ruff nor import-linter can check."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
MODULES = sorted((ROOT / "src" / "lqgap").rglob("*.py"))
MAX_LINES = 400
RELATION = re.compile(r" (?:=|<=|>=|:=) ")
TORN = re.compile(r"(?: (?:=|<=|>=|:=|<|>|\+|-|/)$)|(?:^(?:=|<=|>=|:=|<|>|\+|/) )")
WORD = re.compile(r"[A-Za-z][a-z'-]{2,}")
NO_PROSE = {"and", "cost", "delta", "det", "eps", "exp", "gamma", "inf", "kappa", "log", "max", "min", "rho"}
NO_PROSE |= {"sqrt", "sum", "sup", "Delta", "Phi", "Sigma"}


def name_of(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_opens_with_what_it_is_and_stays_short(path):
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)), "no docstring"
    assert len(text.splitlines()) <= MAX_LINES


def is_stray_equation(line):
    """Whether a line of a docstring is an equation, or ends or begins within one, and is not indented."""
    if line.startswith("    "):
        return False
    words = {token.strip("(,.;:)") for token in line.split()}
    has_prose = any(WORD.fullmatch(word) for word in words - NO_PROSE)
    return bool(TORN.search(line) or (RELATION.search(line) and not has_prose))


def test_displayed_equations_are_indented_and_others_stay_on_one_line():
    strays = [
        f"{name_of(path)}: {line}"
        for path in MODULES
        for line in ast.get_docstring(ast.parse(path.read_text()), clean=False).splitlines()
        if is_stray_equation(line)
    ]
    assert not strays, "\n".join(strays)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_public_names_come_before_private_helpers(path):
    definitions = [
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__")
    ]
    private = [name.startswith("_") for name in definitions]
    assert private == sorted(private), definitions


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_shape_checks_stay_on_and_global_options_stay_untouched(path):
    text = path.read_text()
    assert "from __future__ import annotations" not in text
    if path.parent.name != "cli" and path.name != "__init__.py":
        assert not re.search(r"jax\.config\.update", text)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_has_its_test_module(path):
    if path.name.startswith("__") or path.name in {"errors.py", "version.py"}:
        return
    relative = path.relative_to(ROOT / "src" / "lqgap")
    assert (ROOT / "tests" / relative.parent / f"test_{path.name}").exists()


def test_no_folder_or_module_is_a_drawer():
    drawers = {"utils", "util", "helpers", "common", "misc", "tools"}
    assert not [name_of(path) for path in MODULES if drawers & {path.stem, *path.relative_to(ROOT).parts}]


def test_pins_name_no_index():
    for path in (ROOT / "requirements").glob("*.txt"):
        assert "://" not in path.read_text()
        assert "--" not in path.read_text()
