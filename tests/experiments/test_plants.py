import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.experiments.family import make_family
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.plants import Plants, key_for, make_map, make_members, make_real, pad_to

PLANT = '[plant]\nfamily = "mass_spring_damper"\n'


def study_of(tmp_path, text, plant=PLANT):
    study, source = parse_study(plant + text, name="study.toml", folder=tmp_path)
    return study, make_family(study, source), source


@pytest.mark.slow
def test_the_class_is_a_grid_or_a_sample(tmp_path):
    assert len(make_members(*study_of(tmp_path, "[grid]\npoints = 3"))) == 9
    by_name = make_members(*study_of(tmp_path, "[grid]\npoints = {gain = 2}"))
    assert len(by_name) == 2
    one, other = (make_members(*study_of(tmp_path, "[grid]\nsample = 5")) for _ in range(2))
    np.testing.assert_array_equal(one.parameters, other.parameters)
    with pytest.raises(lg.InvalidStudyError, match=r"line 3: grid: .*441 members, more than 400"):
        make_members(*study_of(tmp_path, "[grid]\npoints = 21"))
    with pytest.raises(lg.InvalidStudyError, match=r"line 3: grid: there is no parameter 'x'"):
        make_members(*study_of(tmp_path, "[grid]\npoints = {x = 2}"))


REAL = """
[real]
count = 2
plants = [{stiffness = 1, gain = 2}, {stiffness = 9, gain = 2}]
outside = [{A = [[0.9, 0.1, 0], [0, 0.8, 0], [0, 0, 0.5]], B = [[1], [1], [1]], C = [[1, 0, 0]]}]
"""


def test_real_plants_are_drawn_given_or_outside(tmp_path):
    study, family, source = study_of(tmp_path, REAL)
    real = make_real(study, family, source)
    assert real.names == ("real 1", "real 2", "given 1", "given 2", "outside 1")
    assert real.is_member == (True, True, True, False, False)
    assert real.parameters[2:] == ({"stiffness": 1.0, "gain": 2.0}, {"stiffness": 9.0, "gain": 2.0}, {})
    assert real.systems.A.shape == (5, 3, 3)  # padded to the largest
    np.testing.assert_array_equal(real.systems.A[2, :2, :2], family.system({"stiffness": 1, "gain": 2}).A)
    np.testing.assert_array_equal(real.systems.R[4], family.nominal().R)  # the cost is ours


@pytest.mark.parametrize(
    ("real", "says"),
    [
        ("plants = [{stifness = 1, gain = 2}]", r"real.plants.0: there is no parameter 'stifness'"),
        ("plants = [{gain = 2}]", "real.plants.0: there is no value for stiffness"),
        ("outside = [{A = [[1]], B = [[1, 1]], C = [[1]]}]", "real.outside.0: .*R has shape"),
        ("outside = [{A = [[1]], B = [[1]], C = [[1], [1]]}]", "real.outside.0: .*Q has shape"),
        ("outside = [{A = [[1, 2]], B = [[1]], C = [[1]]}]", "real.outside.0: A has shape"),
    ],
)
def test_a_real_plant_that_makes_no_sense_is_named(tmp_path, real, says):
    with pytest.raises(lg.InvalidStudyError, match=says):
        make_real(*study_of(tmp_path, f"[real]\ncount = 0\n{real}"))


def test_padding_changes_no_law():
    plant = lg.plants.mass_spring_damper().nominal()
    padded = pad_to(plant, 4)
    assert padded.num_states == 4
    value = [float(lg.solve_finite(p, horizon=30).value) for p in (plant, padded)]
    np.testing.assert_allclose(*value, rtol=1e-12)
    policy = lg.policies.StationaryLQG(plant)
    gaps = [float(lg.exact_gap(policy, p, horizon=30)) for p in (plant, padded)]
    np.testing.assert_allclose(*gaps, rtol=1e-9, atol=1e-12)


def test_the_map_is_over_the_first_two_intervals(tmp_path):
    study, family, _ = study_of(tmp_path, "[evaluation]\nmap_points = 3")
    box = make_map(study, family)
    assert (box.x.name, box.y.name, box.held) == ("stiffness", "gain", {})
    assert (box.shape, box.x_values.tolist(), box.y_values.tolist()) == ((3, 3), [0.5, 2.25, 4], [1, 3, 5])
    three = 'family = "mass_spring_damper"\nmass = [1, 2]'
    study, family, _ = study_of(tmp_path, "[evaluation]\nmap_points = 3", plant=f"[plant]\n{three}\n")
    box = make_map(study, family)
    assert box.held == {"mass": 1.5}
    study, family, _ = study_of(tmp_path, "", plant='[plant]\nfamily = "unknown_sign"\n')
    assert make_map(study, family) is None


def test_plants_of_the_ranges_are_tried_the_map_first_and_corners_and_others_where_it_does_not_show_all(
    tmp_path,
):
    def tried(plant):
        text = f"[plant]\n{plant}\n[evaluation]\nmap_points = 3"
        return Plants(*parse_study(text, name="study.toml", folder=tmp_path), trust=False).tried.parameters

    spring = 'family = "mass_spring_damper"'
    np.testing.assert_array_equal(tried(spring)[:3], [[0.5, 1], [2.25, 1], [4, 1]])
    assert len(tried(spring)) == 9
    three = np.asarray(tried(f"{spring}\nmass = [1, 2]"))
    assert len(three) == 9 + 64
    ends = [np.isin(column, [column.min(), column.max()]) for column in three[9:].T]
    assert np.sum(np.all(ends, axis=0)) == 8
    one = np.asarray(tried(f"{spring}\nstiffness = 1"))
    assert (one.min(), one.max()) == (1, 5)
    assert set(np.asarray(tried('family = "unknown_sign"')).ravel()) == {-1, 1}


def test_every_purpose_and_seed_has_a_key_of_its_own():
    keys = {tuple(jax.random.key_data(key_for(s, p)).tolist()) for s in (0, 1) for p in ("a", "b")}
    assert len(keys) == 4
