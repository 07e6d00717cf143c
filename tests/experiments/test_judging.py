import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.experiments.judging import FRESH, gaps_of, judge, optimum, worst_gap
from lqgap.experiments.methods.base import Knowing
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.plants import Plants, key_for
from lqgap.experiments.units import NOISE, Workspace
from lqgap.policies import ModelBank, StationaryLQG, Zero

PLANT = 'A = [["pole"]]\nB = [["push"]]\nC = [[1.0]]\n'
STUDY = """
horizon = 20
[plant]
{plant}
[grid]
points = 2
[real]
count = 3
[evaluation]
rollouts = 64
map_points = 3
"""


def workspace_of(tmp_path, ranges, plant=PLANT):
    plant = f"{plant}parameters = {ranges}"
    study, source = parse_study(STUDY.format(plant=plant), name="study.toml", folder=tmp_path)
    plants = Plants(study, source, trust=False)
    return Workspace(plants, range(len(plants.members)), tmp_path)


@pytest.fixture
def workspace(tmp_path):
    return workspace_of(tmp_path, "{pole = [0.5, 0.98], push = [0.5, 1.5]}")


def test_gaps_in_batches_are_those_of_all_plants_at_once(workspace):
    policy = StationaryLQG(workspace.members[0])
    found = gaps_of(workspace, policy, workspace.judged, 64)
    alone = lg.gap(policy, workspace.judged, horizon=20, key=key_for(0, NOISE), num_rollouts=64, ends=False)
    np.testing.assert_allclose(found.mean, alone.mean, rtol=1e-12)
    np.testing.assert_allclose(found.totals, alone.totals, rtol=1e-12)
    assert found.has_light_tail == alone.has_light_tail


@pytest.mark.parametrize("ranges", ["{pole = [0.5, 0.98], push = [0.5, 1.5]}", "{push = [0.1, 1.5]}"])
def test_the_worst_in_the_ranges_is_searched_for_and_judged_on_fresh_noise(tmp_path, ranges):
    """Of one parameter as well; nothing on a fine grid is much worse by exact gaps."""
    plant = PLANT if "pole" in ranges else PLANT.replace('"pole"', "0.95")
    workspace = workspace_of(tmp_path, ranges, plant)
    policy = StationaryLQG(workspace.members[0])
    idle = optimum(workspace).idle
    found = judge(workspace, "nominal", policy, num_rollouts=64, idle=idle).gaps
    family = workspace.plants.family
    at = family.members([[found.box_worst_at[name] for name in family.names]])
    on = {noise: gaps_of(workspace, policy, at.systems, 64, noise=noise).mean[0] for noise in (NOISE, FRESH)}
    assert min(abs(found.box_worst.mean / mean - 1) for mean in on.values()) < 1e-9
    exact = jax.jit(jax.vmap(lambda p: lg.exact_gap(policy, p, horizon=20, ends=False)))
    assert float(exact(at.systems)[0]) > 0.95 * float(np.max(exact(family.grid(15).systems)))


def test_the_upper_end_of_the_bracket_covers_the_class_and_what_was_found_from_more_rollouts(workspace):
    """Nine exact gaps, and a limit that fails in 5 % of repetitions."""
    policy, family = StationaryLQG(workspace.members[0]), workspace.plants.family
    found = family.sample(5, key=jax.random.key(0))
    rows = np.asarray(found.parameters).tolist()
    of_class, of_all = (worst_gap(workspace, policy, each, num_rollouts=64) for each in ([], rows))
    assert (of_class.num_plants, of_all.num_plants) == (4, 9)
    exact = jax.jit(jax.vmap(lambda p: lg.exact_gap(policy, p, horizon=20, ends=False)))
    worst = max(float(np.max(exact(members.systems))) for members in (workspace.members, found))
    assert of_all.worst.mean < of_all.upper < np.inf
    assert of_all.upper > worst
    assert abs(of_all.worst.mean - worst) < 5 * of_all.worst.stderr
    assert of_all.worst.mean >= of_class.worst.mean == of_class.of_class.mean == of_all.of_class.mean
    places = [*np.asarray(workspace.members.parameters).tolist(), *rows]
    assert list(of_all.worst_at.values()) in places


def test_a_controller_that_knows_the_plant_has_no_gap(workspace):
    found = judge(workspace, "oracle", Knowing(None), num_rollouts=64, idle=[])
    assert found.gaps.box_worst.mean == found.gaps.real_worst.mean == 0
    assert found.unfit is None


def test_what_never_acts_and_what_diverges_is_unfit(workspace):
    idle = optimum(workspace).idle
    never = judge(workspace, "bank", Zero(num_inputs=1, num_outputs=1), num_rollouts=64, idle=idle)
    assert never.unfit.startswith("no input at all is as good or better on ")
    wild = StationaryLQG(lg.LQG([[3.0]], [[0.1]], [[1.0]]))
    assert "diverges" in judge(workspace, "nominal", wild, num_rollouts=64, idle=idle).unfit


def test_plants_of_the_ranges_without_an_optimum_are_passed_over_with_a_warning(tmp_path):
    """No input moves the middle of the map."""
    workspace = workspace_of(tmp_path, "{pole = [1.1, 1.2], push = [-1.0, 1.0]}")
    assert np.sum(~workspace.is_solvable) == 3
    found = optimum(workspace)
    assert "3 of 9 plants of the ranges have no optimum" in found.warnings[-1]
    assert np.sum(np.isnan(found.heat_map.optimal_cost)) == 3
    bank = ModelBank(workspace.members.systems)
    judged = judge(workspace, "bank", bank, num_rollouts=64, idle=found.idle)
    assert np.sum(np.isnan(judged.heat_map.gap)) == 3
    assert np.isfinite(judged.gaps.box_worst.mean)


def test_a_real_plant_without_an_optimum_is_named(tmp_path):
    text = STUDY.format(plant=PLANT + "parameters = {pole = [1.1, 1.2], push = [0.0, 1.0]}")
    text = text.replace("count = 3", "count = 0\nplants = [{pole = 1.1, push = 0.0}]")
    plants = Plants(*parse_study(text, name="study.toml", folder=tmp_path), trust=False)
    with pytest.raises(lg.NotConvergedError, match=r"given 1 \(pole = 1.1, push = 0\) has no optimum"):
        optimum(Workspace(plants, [1, 3], tmp_path))
