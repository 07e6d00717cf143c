import jax
import numpy as np
import pytest
from random_systems import random_plant

from lqgap.errors import InvalidArgumentError
from lqgap.simulators import Ball

PLANT = random_plant(0, states=2, inputs=1, outputs=1)


def test_the_entries_of_the_named_matrices_vary():
    ball = Ball(PLANT, radius={"A": 0.1, "B": 0.2})
    assert ball.names == ("A11", "A12", "A21", "A22", "B11", "B21")
    drawn = ball.sample(200, key=jax.random.key(0)).systems
    assert np.abs(drawn.A - PLANT.A[None]).max() <= 0.1
    assert 0.15 < np.abs(drawn.B - PLANT.B[None]).max() <= 0.2
    np.testing.assert_array_equal(drawn.C, np.broadcast_to(PLANT.C, drawn.C.shape))


def test_the_spectral_ball_is_bounded_in_the_spectral_norm_and_filled():
    ball = Ball(PLANT, radius=0.1, norm="spectral")
    drawn = ball.sample(300, key=jax.random.key(0)).systems
    sizes = np.linalg.norm(drawn.A - PLANT.A[None], ord=2, axis=(1, 2))
    assert 0.095 < sizes.max() <= 0.1
    assert sizes.min() < 0.05
    corner = np.array([[parameter.high for parameter in ball.parameters]])
    assert not ball.is_inside(corner)[0]


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(radius=-1), "radius of A is -1"),
        (dict(radius={"D": 1}), "no parameter 'D', only A, B, C"),
        (dict(radius=1, norm="nuclear"), "expected 'entries' or 'spectral'"),
    ],
)
def test_a_malformed_ball_raises(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        Ball(PLANT, **arguments)


def test_a_corner_of_the_box_is_no_member_of_the_spectral_ball():
    ball = Ball(PLANT, radius={"A": 0.1}, norm="spectral")
    with pytest.raises(InvalidArgumentError, match="does not belong to the family"):
        ball.system([parameter.high for parameter in ball.parameters])
