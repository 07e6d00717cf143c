import numpy as np

import lqgap as lg
from lqgap.adaptive.vtr.mismatch import mismatch
from lqgap.simulators import ParameterBox


def family_of(low, high):
    return ParameterBox(lambda gain: lg.LQG([[0.8]], [[gain]], [[1.0]]), {"gain": (low, high)})


def test_a_finer_grid_is_nearer_to_every_plant_of_the_family():
    family = family_of(0.5, 2.0)
    coarse, fine = (mismatch(family, family.grid(points), weighting="equal") for points in (3, 9))
    assert 0 < fine[0] < coarse[0] / 2
    assert 0 < fine[1] < coarse[1] / 4  # an error of prediction enters innovations by its square


def test_a_family_of_one_plant_has_no_mismatch():
    family = family_of(1.0, 1.0 + 1e-12)
    resolution, slack = mismatch(family, family.grid(2), weighting="variance")
    assert resolution < 1e-9
    assert slack < 1e-9


def test_the_slack_is_that_of_the_innovations_of_the_nearest_member():
    """Every plant drawn is run with its own controller; here the only member is far from all of them."""
    family = family_of(1.0, 1.0 + 1e-12)
    far = family_of(1.5, 1.5 + 1e-12).grid(1)
    _, slack = mismatch(family, far, weighting="equal")
    plant, other = family.grid(1)[0], far[0]
    optimum, gains = lg.solve(plant), lg.solve(other)
    a, b, c = 0.8, 1.0, 1.5
    K, L, S = (float(np.squeeze(part)) for part in (optimum.K, optimum.L, optimum.S))
    gain, spread = float(np.squeeze(gains.L)), float(np.squeeze(gains.S))
    rng = np.random.default_rng(0)
    x = z = 0.0
    total, steps = 0.0, 200_000
    for normal in rng.normal(size=steps):
        u = -K * x
        mean, guess = a * x + b * u, a * z + c * u
        y = mean + np.sqrt(S) * normal
        total += (guess - mean) ** 2
        x, z = mean + L * (y - mean), guess + gain * (y - guess)
    expected = 1.5 * ((S + total / steps) / spread - 1)
    np.testing.assert_allclose(slack, expected, rtol=0.15)
