"""What every family can do: the contract, for each of them."""

import functools

import jax
import numpy as np
import pytest
from springs import FAMILY

import lqgap
from lqgap.errors import InvalidArgumentError, LqgapWarning
from lqgap.simulators import Ball, LinearSpan, ParameterBox
from lqgap.simulators.family import draw_distinct
from lqgap.systems import delay_input

PLANT = lqgap.LQG([[0.7, 0.2], [0.0, 0.5]], [[1.0], [0.5]], [[1.0, 0.0]])


def with_delay(gain, delay):
    return delay_input(lqgap.LQG([[0.9]], [[gain]], [[1.0]]), delay, longest=2)


def in_plain_python(pole):
    return lqgap.LQG(np.array([[float(pole)]]), [[1.0]], [[1.0]])


FAMILIES = {
    "box": lambda: FAMILY,
    "box with choices": lambda: ParameterBox(with_delay, {"gain": (0.5, 1.5), "delay": [0, 1, 2]}),
    "box of plain Python": lambda: ParameterBox(in_plain_python, {"pole": (0.1, 0.9)}),
    "span": lambda: LinearSpan(
        [PLANT, lqgap.LQG(np.eye(2) * 0.2, [[0.0], [0.0]], [[0.0, 0.0]])], [(1, 1), (-1, 1)]
    ),
    "ball of entries": lambda: Ball(PLANT, radius={"A": 0.05}),
    "spectral ball": lambda: Ball(PLANT, radius={"B": 0.2}, norm="spectral"),
}


@functools.cache
def family_of(name):
    return FAMILIES[name]()


@pytest.fixture(params=sorted(FAMILIES))
def family(request):
    return family_of(request.param)


def test_grid_sample_and_system_agree(family):
    members = family.grid(3)
    for index in (0, len(members) - 1):
        np.testing.assert_allclose(members[index].A, family.system(members.parameters[index]).A, atol=1e-12)
    drawn = family.sample(7, key=jax.random.key(0))
    assert len(drawn) == 7
    assert np.all(family.is_inside(np.asarray(drawn.parameters)))
    np.testing.assert_array_equal(drawn.parameters, family.sample(7, key=jax.random.key(0)).parameters)
    assert len(np.unique(np.asarray(drawn.parameters), axis=0)) > 1
    assert len(family.names) == len(family.units) == drawn.parameters.shape[1]


@pytest.mark.parametrize("name", ["unknown_sign", "phase_pair", "overactuated"])
def test_a_sample_has_no_member_twice_and_says_if_there_are_fewer(name):
    family = getattr(lqgap.plants, name)()
    every = {tuple(row) for row in np.asarray(family.grid(1).parameters).tolist()}
    with pytest.warns(LqgapWarning, match=f"6 members was asked for, and there are only {len(every)}"):
        drawn = family.sample(6, key=jax.random.key(0))
    assert sorted(map(tuple, np.asarray(drawn.parameters).tolist())) == sorted(every)
    assert len(family.sample(6, key=jax.random.key(0), replace=True)) == 6


def test_rows_of_many_choices_are_distinct_and_depend_on_the_key():
    family = ParameterBox(in_plain_python, {name: [1.0, 2.0, 3.0] for name in "abcdef"})
    drawn = [draw_distinct(family, jax.random.key(seed), 400) for seed in (0, 1)]
    assert all(len(np.unique(theta, axis=0)) == 400 for theta in drawn)
    assert not np.array_equal(*drawn)
    np.testing.assert_array_equal(draw_distinct(family, jax.random.key(0), 9999).mean(axis=0), 2.0)  # all 3^6


@pytest.mark.slow
def test_it_contains_its_own_members_and_not_another_plant(family):
    member = family.sample(1, key=jax.random.key(5))
    assert family.contains(member[0], tolerance=1e-5)
    states = member.systems.num_states
    assert not family.contains(
        lqgap.LQG(0.3 * np.eye(states), 7 * np.ones((states, 1)), np.ones((1, states))), tolerance=1e-5
    )


@pytest.mark.slow
def test_covers_cover(family):
    """A statistical check of what the construction promises: none of 200 random members is farther away."""
    radius = 0.15
    cover = family.cover(radius)
    assert cover.radius == radius
    assert np.all(family.is_inside(np.asarray(cover.parameters)))
    drawn = family.sample(200, key=jax.random.key(7))
    distance = np.linalg.norm(
        drawn.invariants(length=32)[:, None] - cover.invariants(length=32)[None], axis=2
    ).min(axis=1)
    assert distance.max() <= radius


def test_only_builds_that_jax_can_trace_are_traceable():
    assert {name: family_of(name).is_traceable for name in FAMILIES} == {
        name: name != "box of plain Python" for name in FAMILIES
    }


def test_grids_can_be_finer_in_one_parameter():
    assert len(FAMILY.grid({"gain": 4})) == 4
    with pytest.raises(InvalidArgumentError, match="did you mean gain"):
        FAMILY.grid({"gains": 4})
    with pytest.raises(InvalidArgumentError, match="points is 0"):
        FAMILY.grid(0)


def test_the_nominal_member_is_the_middle():
    np.testing.assert_allclose(lqgap.solve(FAMILY.nominal()).J, 3.915149, rtol=2e-7)
