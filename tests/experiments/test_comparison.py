import math

import numpy as np
import pytest

from lqgap.experiments.comparison import Cell, Comparison, Contender, OnlineRun, equals


def cell(method, excess, *, horizon=100, family="springs", diverged=(), warming=()):
    """Of one truth, a run for each excess."""
    runs = [
        OnlineRun(
            truth="middle", member=2, seed=seed, excess=value, switches=seed, stopped=0, faults=0, is_warming=seed in warming,
            diverged_at=5 if seed in diverged else None,
        )
        for seed, value in enumerate(excess)
    ]  # fmt: skip
    return Cell(
        family=family, method=method, horizon=horizon, optimum=2.0, runs=runs, mean=float(np.mean(excess)),
        stderr=float(np.std(excess, ddof=1) / math.sqrt(len(excess))), seconds_per_step=1e-6,
        steps=[1, 10, horizon], growth=[0.1, 1.0, float(np.mean(excess))], growth_stderr=[0.0, 0.0, 0.0],
    )  # fmt: skip


def comparison(*cells):
    names = dict.fromkeys(each.method for each in cells)
    methods = [Contender(name=n, label=n.title(), kind="adaptive", description="It learns.") for n in names]
    return Comparison(
        methods=methods, families=[], horizons=[100], seeds=[0, 1, 2], cells=list(cells), left_out=[]
    )


def test_a_comparison_is_json_and_back_without_loss():
    whole = comparison(cell("a", [1.0, 2.0, 4.0]), cell("b", [2.0, 2.5, 3.5], diverged=[1]))
    assert Comparison.model_validate_json(whole.model_dump_json()) == whole


def test_records_are_flat_rows_of_all_runs():
    rows = comparison(cell("a", [1.0, 2.0, 3.0]), cell("b", [2.0, 2.5, 3.5])).records()
    assert len(rows) == 6
    assert len({frozenset(row) for row in rows}) == 1
    assert (rows[4]["method"], rows[4]["seed"], rows[4]["excess"]) == ("b", 1, 2.5)
    assert not any(isinstance(value, dict | list) for row in rows for value in row.values())


def test_the_summary_has_intervals_of_students_law():
    (row,) = comparison(cell("a", [1.0, 2.0, 3.0])).summary()
    assert row["excess"] == 2.0
    np.testing.assert_allclose(row["half"], 4.302653 / math.sqrt(3), rtol=1e-6)
    np.testing.assert_allclose(row["share"], 2.0 / (2.0 * 101))
    assert (row["median"], row["switches"], row["diverged"], row["runs"]) == (2.0, 1.0, 0, 3)


def test_who_diverged_comes_last_and_equals_are_judged_on_common_noise():
    best, near = cell("a", [1.0, 5.0, 9.0]), cell("b", [0.9, 5.3, 9.1])
    clearly = cell("c", [2.0, 6.1, 9.9])  # a little worse, but for every seed
    broken = cell("d", [0.1, 0.1, 0.1], diverged=[0])
    ranked = comparison(broken, clearly, near, best).at("springs", 100)
    assert [each.method for each in ranked] == ["a", "b", "c", "d"]
    assert [each.method for each in equals(ranked)] == ["a", "b"]
    same = cell("same", [1.0 + 1e-12, 5.0 + 1e-12, 9.0 + 1e-12])  # by rounding
    assert len(equals([best, same])) == 2


def test_who_only_warmed_up_is_ranked_behind_those_that_did_not():
    idle = cell("idle", [0.1, 0.1, 0.1], warming=[0, 1, 2])
    ranked = comparison(idle, cell("a", [1.0, 5.0, 9.0])).at("springs", 100)
    assert [each.method for each in ranked] == ["a", "idle"]
    assert len(equals(ranked)) == 1


def test_a_method_that_one_run_makes_uncertain_is_no_equal_if_it_loses_with_every_seed():
    best = cell("a", [1.0, 1.1, 0.9, 1.2, 1.0])
    wild = cell("b", [9.0, 8.0, 7.0, 9.0, 1e6])
    assert [each.method for each in equals([best, wild])] == ["a"]
    mixed = cell("b", [0.5, 0.6, 7.0, 9.0, 1e6])
    assert len(equals([best, mixed])) == 2


def test_the_worst_truth_is_that_with_the_largest_mean_of_runs_that_held():
    one = cell("a", [1.0, 2.0, 3.0], diverged=[2])
    other = [
        run.model_copy(update={"truth": "lowest J", "excess": 9.0, "diverged_at": None}) for run in one.runs
    ]
    assert one.worst == 1.5
    assert one.model_copy(update={"runs": [*one.runs, *other]}).worst == 9.0
    assert math.isnan(cell("a", [1.0, 2.0, 3.0], diverged=[0, 1, 2]).worst)


@pytest.mark.parametrize(("step", "value"), [(0, 0.0), (1, 0.1), (50, 1.0), (1000, 2.0)])
def test_growth_is_read_at_the_last_step_shown(step, value):
    assert cell("a", [1.0, 2.0, 3.0]).excess_by(step) == value
