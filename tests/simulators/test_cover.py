import jax.numpy as jnp
import numpy as np
import pytest
from springs import FAMILY, build

import lqgap
from lqgap.errors import InvalidArgumentError, NotStabilizableError
from lqgap.simulators import Ball, ParameterBox


@pytest.mark.slow
@pytest.mark.parametrize(("free", "order"), [(["stiffness"], 1), (["stiffness", "gain"], 2)])
def test_the_count_grows_like_the_radius_to_minus_the_number_of_parameters(free, order):
    fixed = {"stiffness": 2.0, "gain": 2.0}
    held = {name: value for name, value in fixed.items() if name not in free}
    intervals = {"stiffness": (0.5, 4.0), "gain": (1.0, 5.0)}
    family = ParameterBox(lambda **values: build(**values, **held), {name: intervals[name] for name in free})
    radii = np.array([0.2, 0.1, 0.05, 0.025])
    counts = [len(family.cover(radius)) for radius in radii]
    slope = np.polyfit(np.log(radii), np.log(counts), 1)[0]
    # Halving cells makes counts jump by factors of two, so the slope is known to a quarter only.
    assert abs(slope + order) < 0.25


def test_a_cover_too_large_is_refused_before_it_is_built():
    family = ParameterBox(lambda pole: lqgap.LQG([[pole]], [[1.0]], [[1.0]]), {"pole": (0.1, 0.9)})
    with pytest.raises(InvalidArgumentError, match="more than 50 members: choose a larger radius"):
        family.cover(0.001, max_members=50)


@pytest.mark.parametrize("radius", [0, -1, np.nan, "small"])
def test_a_radius_is_positive(radius):
    with pytest.raises(InvalidArgumentError):
        FAMILY.cover(radius)


def test_a_member_without_optimum_is_named():
    family = ParameterBox(
        lambda gain: lqgap.LQG([[1.1]], [[gain]], [[1.0]]), {"gain": (-1.0, 1.0)}
    )  # gain 0 in the middle
    with pytest.raises(NotStabilizableError, match=r"gain = 0\b"):
        family.cover(0.1)


@pytest.mark.slow
def test_a_narrow_feature_is_not_overlooked():
    def build(k):
        return lqgap.LQG([[0.5]], [[1 + 3 * jnp.exp(-(((k - 0.3) / 0.02) ** 2))]], [[1.0]])

    family = ParameterBox(build, {"k": (0.0, 1.0)})
    cover = family.cover(0.2)
    vectors = family.grid(1001).invariants(length=32)
    distance = np.linalg.norm(vectors[:, None] - cover.invariants(length=32)[None], axis=2).min(axis=1)
    assert distance.max() <= 0.2


@pytest.mark.slow
def test_a_parameter_without_effect_is_not_halved_for_ever():
    family = ParameterBox(
        lambda unused, b: lqgap.LQG([[0.5]], [[2 + jnp.cos(2 * jnp.pi * b) + 0 * unused]], [[1.0]]),
        {"unused": (0.0, 1.0), "b": (0.0, 1.0)},
    )
    assert len(family.cover(0.2)) < 200


def test_too_many_parameters_are_refused_at_once():
    ball = Ball(lqgap.LQG(0.5 * np.eye(3), np.ones((3, 1)), np.ones((1, 3))), radius=0.1)
    with pytest.raises(InvalidArgumentError, match="15 continuous parameters"):
        ball.cover(0.5)
