import functools

import pytest

import lqgap as lg
from lqgap.experiments import compare as module
from lqgap.experiments.compare import compare
from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.thompson import Thompson

small = functools.partial(compare, horizons=[40], seeds=3)


@pytest.fixture(scope="module")
def signs():
    return {"signs": lg.plants.unknown_sign().grid(2)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": ["tompson"]}, "did you mean"),
        ({"methods": ["thompson{lasy = true}"]}, "lasy"),
        ({"methods": ["thompson{lazy = }"]}, "not TOML"),
        ({"methods": ["oracle"]}, "measured against"),
        ({"methods": []}, "at least one"),
        ({"families": ["dc_moter"]}, "dc_motor"),
        ({"families": ["dc_motor{inertial = 2.0}"]}, "inertial"),
        ({"families": ["dc_motor", "dc_motor{points = 2}"]}, "two classes of one name"),
        ({"horizons": [5]}, "horizons is 5"),
        ({"seeds": 1}, "two or more"),
    ],
)
def test_bad_arguments_are_named_before_any_work(signs, arguments, message):
    with pytest.raises(lg.LqgapError, match=message):
        small(**({"methods": ["map"], "families": signs} | arguments))


def test_what_was_computed_is_not_computed_again(signs, tmp_path, monkeypatch):
    first = small(["map"], signs, folder=tmp_path)
    told = []
    again = small(["map", "bank"], signs, folder=tmp_path, progress=lambda name, _: told.append(name))
    assert told == ["bank on signs"]
    assert again.cells[0] == first.cells[0]
    monkeypatch.setattr(module, "work", lambda _: pytest.fail("it was known"))
    assert small(["bank", "map"], signs, folder=tmp_path).cells == again.cells[::-1]


def test_a_method_that_fails_on_a_class_is_left_out_there(signs, monkeypatch):
    def fail(_, __):
        raise lg.InvalidArgumentError("it needs more")

    monkeypatch.setattr(Thompson, "make", fail)
    found = small(["thompson", "map"], signs)
    (left_out,) = found.left_out
    assert (left_out.family, left_out.method, left_out.reason) == ("signs", "thompson", "it needs more")
    assert [cell.method for cell in found.cells] == ["map"]


def test_all_methods_see_the_same_noise_and_truths(signs):
    """Where nothing is to be learned, and all do the same, the runs are the same."""
    alone = {"alone": signs["signs"].subset([0])}
    found = small(["bank", "map", "certainty"], alone)
    assert all(cell.mean < 1e-20 for cell in found.cells)
    assert found.families[0].truths == {"middle, lowest J, highest J": "sign = -1"}
    assert found.contender("map").label == "Likeliest member"


@pytest.mark.slow
def test_processes_find_the_same(signs):
    theirs, ours = (small(["map", "bank"], signs, processes=count).cells for count in (2, 1))
    for one, other in zip(theirs, ours, strict=True):
        assert [run.seed for run in one.runs] == [run.seed for run in other.runs]
        assert [run.excess for run in one.runs] == pytest.approx([run.excess for run in other.runs])


@pytest.mark.slow
def test_a_trained_policy_is_run_as_it_is_and_its_training_is_kept(signs, tmp_path):
    robust = {"robust": METHODS["robust"](steps=2)}
    found = small(robust, signs, folder=tmp_path)
    assert [path.parent.name for path in (tmp_path / "checkpoints").glob("*")] == ["checkpoints"]
    again = small(robust, signs, folder=tmp_path, seeds=[0, 1, 2, 3])  # other runs of the same training
    assert [run.excess for run in again.cells[0].runs[:3]] == [run.excess for run in found.cells[0].runs[:3]]
    assert found.left_out == []
    (cell,) = found.cells
    assert cell.num_diverged == 0
    assert cell.mean > 0
