import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.evaluation.arguments import cast, read_horizon, read_precision, read_systems
from lqgap.policies import FiniteHorizonLQG, Zero

PLANT = lg.LQG([[0.9]], [[1.0]], [[1.0]])
ZERO = Zero(num_inputs=1, num_outputs=1)


def test_one_plant_a_batch_and_a_class_read_alike():
    for members in (PLANT, lg.stack([PLANT]), lg.simulators.Finite([PLANT])):
        assert read_systems(ZERO, members).A.shape == (1, 1, 1)


@pytest.mark.usefixtures("as_users_run_it")
def test_a_family_is_refused_with_advice():
    with pytest.raises(lg.InvalidArgumentError, match=r"\.grid"):
        read_systems(ZERO, lg.plants.mass_spring_damper())


@pytest.mark.usefixtures("as_users_run_it")
def test_sizes_must_fit():
    with pytest.raises(lg.InvalidArgumentError, match="do not fit"):
        read_systems(Zero(num_inputs=2, num_outputs=1), PLANT)


@pytest.mark.usefixtures("as_users_run_it")
def test_a_policy_is_not_run_beyond_its_horizon():
    with pytest.raises(lg.InvalidArgumentError, match="made for steps"):
        read_horizon(FiniteHorizonLQG(PLANT, 5), 6)
    with pytest.raises(lg.InvalidArgumentError, match=r"expected an lqgap\.policies\.AbstractPolicy"):
        lg.gap("policy", PLANT, horizon=6, key=jax.random.key(0))
    assert read_horizon(FiniteHorizonLQG(PLANT, 5), 5) == 5


@pytest.mark.usefixtures("as_users_run_it")
def test_precisions_are_two():
    assert cast({"x": jnp.ones(2), "n": jnp.arange(2)}, read_precision("float32"))["x"].dtype == jnp.float32
    with pytest.raises(lg.InvalidArgumentError, match="float16"):
        read_precision("float16")


def test_arrays_of_numpy_are_cast_too():
    """`vmap` hands arrays of NumPy back as they are, so that a batch of plants may be made of them."""
    for dtype in (jnp.float32, jnp.float64):
        assert cast({"x": np.ones(2)}, dtype)["x"].dtype == dtype
