import functools

import pytest

import lqgap as lg
from lqgap.experiments import compare as module
from lqgap.experiments.compare import compare
from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.thompson import Thompson
from lqgap.report.comparison import verdict

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
        ({"families": ["dc_motor", "dc_motor "]}, "two classes of one name"),
        ({"families": "dc_motor"}, "expected a list of names"),
        ({"families": 3}, "expected a list of names"),
        ({"families": {"mine": 3}}, "families has a int as 'mine'"),
        ({"families": {3: "dc_motor"}}, "families has the name 3"),
        ({"methods": {"": Thompson()}}, "methods has the name ''"),
        ({"methods": "map"}, "expected a list of names"),
        ({"methods": 3}, "methods is 3"),
        ({"methods": {"mine": 3}}, "methods has a int as 'mine'"),
        ({"horizons": [5]}, "horizons is 5"),
        ({"horizons": []}, "expected a list"),
        ({"horizons": 100}, "expected a list"),
        ({"seeds": 2.5}, "expected a list"),
        ({"processes": 0}, "processes is 0"),
        ({"seeds": 1}, "seeds is 1, expected a whole number from 2"),
        ({"seeds": True}, "seeds is True"),
        ({"seeds": 10**9}, "from 2 to 100000"),
        ({"methods": ["map", "map "]}, "two of one name"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named_before_any_work(signs, arguments, message):
    with pytest.raises(lg.LqgapError, match=message):
        small(**({"methods": ["map"], "families": signs} | arguments))


def test_what_was_computed_is_not_computed_again(signs, tmp_path, monkeypatch):
    first = small(["map"], signs, folder=tmp_path)
    told = []
    again = small(["map", "bank"], signs, folder=tmp_path, progress=lambda name, *_: told.append(name))
    assert told == ["bank on signs"]
    assert again.cells[0] == first.cells[0]
    monkeypatch.setattr(module, "work", lambda _: pytest.fail("it was known"))
    assert small(["bank", "map"], signs, folder=tmp_path).cells == again.cells[::-1]


def test_what_was_finished_before_a_stop_is_kept(signs, tmp_path, monkeypatch):
    measure, told = module.measure, []

    def stop_at_60(*given, horizon, **how):
        told.append(horizon)
        if len(told) == 2:
            raise KeyboardInterrupt
        return measure(*given, horizon=horizon, **how)

    monkeypatch.setattr(module, "measure", stop_at_60)
    with pytest.raises(KeyboardInterrupt):
        small(["map"], signs, horizons=[40, 60], folder=tmp_path)
    found = small(["map"], signs, horizons=[40, 60], folder=tmp_path)
    assert told == [40, 60, 60]
    assert [cell.horizon for cell in found.cells] == [40, 60]


def test_variants_of_a_method_in_python_have_labels_of_their_own(signs):
    found = small({"a": Thompson(), "b": Thompson(lazy=True)}, signs)
    assert [method.label for method in found.methods] == [
        "Thompson sampling",
        "Thompson sampling (lazy = true)",
    ]


def test_limits_of_a_study_are_kept_and_told(tmp_path):
    for name, limits in (("free", ""), ("limited", "limits = 0.5\n")):
        (tmp_path / f"{name}.toml").write_text(
            f'[plant]\nfamily = "unknown_sign"\n{limits}[grid]\npoints = 2\n'
        )
    free, limited = (str(tmp_path / f"{name}.toml") for name in ("free", "limited"))
    found = small(["map"], [free, limited])
    assert found.cells[1].mean > 2 * found.cells[0].mean  # the plant wants inputs of about one
    assert found.families[1].is_limited
    (warning,) = found.warnings
    assert "without limits" in warning


def test_a_method_that_only_warmed_up_is_told_and_is_no_result(signs):
    found = small(["adapt_on", "map"], signs, horizons=[12])
    warming, learned = found.cells
    assert (warming.num_warming, learned.num_warming) == (6, 0)
    assert all(row["is_warming"] == (row["method"] == "adapt_on") for row in found.records())
    assert [cell.method for cell in found.at("signs", 12)] == ["map", "adapt_on"]
    assert "AdaptOn did no more than warm up in 6 of 6 runs" in verdict(found, "signs")


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
