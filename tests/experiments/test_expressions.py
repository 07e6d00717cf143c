import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lqgap as lg
from lqgap.experiments.expressions import CONSTANTS, FUNCTIONS, MAX_LENGTH, names_in, read_formula, value_of
from lqgap.experiments.family import make_family
from lqgap.experiments.parsing import parse_study

VALUES = {"k": 2.5, "mass_1": 0.4, "x": -1.5}
SAFE = {name: getattr(math, name, None) or {"abs": abs, "max": max, "min": min}[name] for name in FUNCTIONS}


def by_python(text):
    """What Python makes of a text that our grammar has accepted: NaN or infinite where it raises."""
    try:
        found = eval(text.strip(), {"__builtins__": {}}, {**SAFE, **CONSTANTS, **VALUES})  # noqa: S307
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return None if isinstance(found, complex) else float(found)


def agrees(text):
    ours, theirs = float(value_of(read_formula(text), VALUES)), by_python(text)
    if theirs is None or not math.isfinite(theirs):
        return True
    return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)


def read_or_complain(text, *reasons):
    """The formula; None if it is none, for one of these reasons or at a place that is named."""
    try:
        return read_formula(text)
    except ValueError as error:
        complaint = str(error)
    assert any(reason in complaint for reason in reasons or ("character ",)), complaint
    return None


ATOMS = st.sampled_from(["1", "2.5", ".5", "3.", "1e-2", "2E1", "pi", *VALUES])


def combine(inner):
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(pair, st.sampled_from(["+", "-", "*", "/", "**"])).map(
            lambda t: f"{t[0][0]} {t[1]} {t[0][1]}"
        ),
        inner.map(lambda t: f"-{t}"),
        inner.map(lambda t: f"({t})"),
        st.tuples(st.sampled_from(sorted(FUNCTIONS - {"max", "min"})), inner).map(
            lambda t: f"{t[0]}({t[1]})"
        ),
        st.tuples(st.sampled_from(["max", "min"]), pair).map(lambda t: f"{t[0]}({t[1][0]}, {t[1][1]})"),
    )


FORMULAS = st.recursive(ATOMS, combine, max_leaves=5)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(FORMULAS)
def test_a_formula_is_worth_what_python_says(text):
    if "**" not in text or (by_python(text) is not None):  # a tower of powers may be as large as it likes
        assert agrees(text), text


PIECES = [
    "k",
    "x",
    "mass_1",
    "pi",
    "1",
    "2.",
    ".5e3",
    "+",
    "-",
    "*",
    "/",
    "**",
    "(",
    ")",
    ",",
    " ",
    "sqrt",
    "max(",
]
HOSTILE = [
    "__import__('os')",
    ".",
    "[",
    "]",
    "'",
    '"',
    "\\",
    ";",
    "\n",
    "=",
    "lambda:",
    "k.real",
    "é",
    "١",
    "1_0",
    "{",
    "\0",
]


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.one_of(st.lists(st.sampled_from(PIECES + HOSTILE), max_size=12).map("".join), st.text(max_size=20)))
def test_any_text_is_a_formula_or_an_error_that_names_a_character(text):
    formula = read_or_complain(text)
    if formula is None:
        return
    assert all(name.isidentifier() for name in names_in(formula))
    if names_in(formula) <= VALUES.keys() and by_python(text) is not None:
        assert agrees(text), text


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9**9",
        "(" * 10_000 + "1" + ")" * 10_000,
        "-" * 150 + "1",
        "(" * 200 + "1" + ")" * 200,
        "1" * 501,
    ],
)
def test_nothing_takes_long(text):
    formula = read_or_complain(text, "at most", "inside of each other")
    assert formula is None or math.isinf(float(value_of(formula, {})))


def test_a_long_sum_is_read_and_computed():
    text = "+".join(["1"] * (MAX_LENGTH // 2))
    assert float(value_of(read_formula(text), {})) == MAX_LENGTH // 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k/", "character 3: expected a number, a name or '(', found the end"),
        ("2 k", "character 3: expected an operator or the end, found 'k'"),
        ("(k + 1", "character 7: expected ')', found the end"),
        ("k.real", "character 2: '.' has no meaning"),
        ("1 + sqr(k)", "character 5: there is no function sqr; did you mean sqrt?"),
        ("sqrt + 1", "character 6: expected '(' after the function sqrt"),
        ("sqrt(1, 2)", "character 1: sqrt has 2, expected one argument"),
        ("max(k)", "character 1: max has 1, expected two arguments or more"),
        ("open(1)", "character 1: there is no function open"),
    ],
)
def test_an_error_says_where_and_what_was_expected(text, message):
    with pytest.raises(ValueError, match="character") as caught:
        read_formula(text)
    assert message in str(caught.value)


def test_a_formula_can_be_traced_mapped_and_differentiated():
    formula = read_formula("-k**2/mass_1 + sqrt(k)")
    slope = jax.jit(
        jax.vmap(jax.grad(lambda k, m: value_of(formula, {"k": k, "mass_1": m})), in_axes=(0, None))
    )
    k = jnp.array([0.5, 2.0])
    np.testing.assert_allclose(slope(k, 4.0), -2 * k / 4 + 0.5 / jnp.sqrt(k), rtol=1e-12)


SPRING = """
[plant]
A = [[0, 1], ["-stiffness/mass", "-friction/mass"]]
B = [[0], ["1/mass"]]
C = [[1, 0]]
parameters = {stiffness = [1, 4], friction = 0.5, mass = [1, 2]}
"""


def family_of(text, tmp_path):
    study, source = parse_study(text, name="study.toml", folder=tmp_path)
    return make_family(study, source)


def test_entries_of_matrices_are_formulas_and_members_are_built_in_one_batch(tmp_path):
    family = family_of(SPRING, tmp_path)
    plant = family.system({"stiffness": 3.0, "mass": 1.5})
    np.testing.assert_allclose(plant.A, [[0, 1], [-2, -0.5 / 1.5]], rtol=1e-15)
    np.testing.assert_allclose(plant.B, [[0], [1 / 1.5]], rtol=1e-15)
    assert family.is_traceable


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "-stiffness/mass",
            "-stifness/mass",
            "line 3: plant.A.1.0: there is no parameter 'stifness'; did you",
        ),
        ("-friction/mass", "-friction//mass", "line 3: plant.A.1.1: character 11: expected a number"),
        ("1/mass", "1 mass", "line 4: plant.B.1.0: character 3: expected an operator or the end"),
        ("mass = [1, 2]", "mass = [1, 2], exp = 1", "in formulas exp means something else"),
        (
            "mass = [1, 2]",
            "mass = [1, 2], extra = 1",
            "plant.parameters.extra: nothing depends on it",
        ),
        ("mass = [1, 2]", "mass = [0, 2]", "mass = 0"),
    ],
)
def test_an_error_in_a_study_names_matrix_row_column_and_character(tmp_path, old, new, message):
    with pytest.raises(lg.InvalidArgumentError) as caught:
        family_of(SPRING.replace(old, new), tmp_path).grid(2)
    assert message in str(caught.value)
