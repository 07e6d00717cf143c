"""The reference is written from the code, and its examples are true."""

import doctest
import importlib
import inspect
import re
import sys
from pathlib import Path

import jax
import pytest

import lqgap as lg
from lqgap.policies import AbstractPolicy

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

from generators import MARK, fill  # noqa: E402
from generators.api import describe_package, list_names, read_examples  # noqa: E402
from generators.commands import describe_commands, list_exit_codes  # noqa: E402
from generators.keys import describe_keys  # noqa: E402

EXAMPLES = read_examples()
PACKAGES = [
    "lqgap",
    "lqgap.simulators.plants",
    *(f"lqgap.{path.stem}" for path in DOCS.glob("reference/python/*")),
]


@pytest.fixture(scope="module")
def beginning():
    """The names that all examples share."""
    text = (DOCS / "reference" / "examples.md").read_text()
    code, names = re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1], {}
    exec(code, names)  # noqa: S102
    return names


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.filterwarnings("ignore:training ended where it began")  # after so few steps
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_says_what_it_prints(name, beginning):
    code = re.sub(r"^```\w*$", "", EXAMPLES[name], flags=re.MULTILINE)
    case = doctest.DocTestParser().get_doctest(code, dict(beginning), name, None, None)
    said = []
    with jax.numpy_rank_promotion("allow"):
        result = doctest.DocTestRunner().run(case, out=said.append)
    assert result.attempted > 0
    assert not result.failed, "".join(said)


def public(package):
    """What users import from it."""
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [])
    return {f"{package}.{name}": getattr(module, name) for name in names}


def needs_an_example(thing):
    """Functions, policies and learners do; most other classes are what these return."""
    if inspect.isclass(thing):
        return issubclass(thing, AbstractPolicy) and not thing.__name__.startswith("Abstract")
    return callable(thing)


def test_every_public_function_policy_and_learner_has_an_example():
    things = {name: thing for package in PACKAGES for name, thing in public(package).items()}
    shown = {id(things[name]) for name in EXAMPLES}  # under any of its names
    assert [
        name for name, thing in things.items() if needs_an_example(thing) and id(thing) not in shown
    ] == []


def test_every_public_name_is_on_the_page_of_its_package():
    for package in ("systems", "policies", "evaluation", "training", "adaptive", "theory"):
        page = describe_package(f"lqgap.{package}")
        for name in getattr(lg, package).__all__:
            assert re.search(rf"^::::{{py:\w+}} lqgap\.{package}\.{name}\b", page, re.MULTILINE), name


def test_a_signature_is_that_of_the_source():
    assert "lqgap.systems.solve_finite(plant: LQG, *, horizon: IntLike, ends: bool=True)" in describe_package(
        "lqgap.systems"
    )


def test_names_at_the_top_lead_to_the_packages_that_have_them():
    page = list_names()
    assert "{py:obj}`lg.gap <lqgap.evaluation.gap>`" in page
    pages = "".join(fill(path.read_text()) for path in DOCS.glob("reference/**/*.md"))
    for home in re.findall(r"<(lqgap[\w.]+)>`", page):
        assert re.search(rf"^::::{{py:\w+}} {home}\b", pages, re.MULTILINE), home


def test_every_command_and_option_is_told():
    page = describe_commands()
    for words in ("## lqgap transfer", "`--quick`", "## lqgap sweep", "`--over`", "`-o`, `--output`"):
        assert words in page


def test_every_exit_code_is_told():
    assert [line.split(" | ")[0] for line in list_exit_codes().splitlines()[2:]] == [
        f"| {code}" for code in (0, 1, 2, 3, 4, 5, 130)
    ]


def test_every_key_of_a_study_has_a_meaning():
    page = describe_keys()  # refuses a key of which study.md says nothing
    for words in ("| `rollouts` | whole number ≥ 2, ≤ 1000000 | `256` |", "### `robust`: Robust training"):
        assert words in page


def test_marks_are_filled_and_nothing_else_is_touched():
    filled = fill("before\n<!-- exit-codes -->\nafter")
    assert filled.startswith("before\n| exit code |")
    assert filled.endswith("|\nafter")
    for page in DOCS.rglob("*.md"):
        assert not MARK.search(fill(page.read_text()))
