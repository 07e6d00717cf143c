import jax
import numpy as np

import lqgap as lg
from lqgap.training.ranges import NUM_KEPT, search_ranges


def build(pole, gain, sign):
    return lg.LQG([[pole]], [[sign * gain]], [[1.0]])


FAMILY = lg.simulators.ParameterBox(build, {"pole": (0.5, 0.9), "gain": (1.0, 2.0), "sign": [-1, 1]})
PEAK = np.asarray([0.63, 1.8, 1.0])


def test_a_peak_inside_of_the_ranges_is_found_and_what_is_kept_lies_apart():
    width = np.asarray([0.4, 1.0, 2.0])

    def gaps_of(members):
        return -np.linalg.norm((np.asarray(members.parameters) - PEAK) / width, axis=1)

    found = np.asarray(search_ranges(gaps_of, FAMILY, jax.random.key(0)).parameters)
    unit = (found - PEAK) / width
    assert len(found) == NUM_KEPT
    # Of 256 looks at a disk of radius 0.05 some lie within a tenth of it.
    assert np.linalg.norm(unit[0]) < 0.01
    apart = np.linalg.norm(unit[:, None] - unit[None], axis=2) + np.eye(len(unit))
    assert np.min(apart) > 0.05
    assert np.all(FAMILY.is_inside(found))


def test_a_member_without_an_optimum_is_never_found_first():
    def gaps_of(members):
        gain = np.asarray(members.parameters)[:, 1]
        return np.where(gain > 1.5, -np.inf, gain)

    found = search_ranges(gaps_of, FAMILY, jax.random.key(1))
    assert 1.45 < found.parameters[0, 1] <= 1.5
