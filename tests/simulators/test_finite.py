import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant
from springs import FAMILY

import lqgap
from lqgap.errors import InvalidArgumentError, InvalidSystemError, LqgapWarning, NotStabilizableError
from lqgap.simulators import Finite, finite
from lqgap.systems import change_coordinates


def test_a_class_is_a_batch_with_names():
    members = FAMILY.grid(3)
    assert len(members) == len(list(members)) == 9
    assert members.describe(1) == "stiffness = 0.5 N/m, gain = 3"
    np.testing.assert_allclose(members[1].A, members.system(1).A)
    np.testing.assert_allclose(members[-1].A, members[8].A)
    with pytest.raises(IndexError, match="member 9 of a class of 9"):
        members[9]


def test_a_list_of_plants_is_numbered():
    members = Finite([random_plant(0), random_plant(1)])
    assert members.describe(1) == "member = 1"


def test_a_subset_is_again_a_class():
    members = FAMILY.grid(3)
    for which in ([2, 5], np.arange(9) % 3 == 2, np.array([2, 5, 8])):
        assert members.subset(which).names == members.names
    np.testing.assert_allclose(members.subset([2, 5]).parameters, members.parameters[jnp.array([2, 5])])
    with pytest.raises(InvalidArgumentError, match="no member of the 9 is left"):
        members.subset(np.zeros(9, dtype=bool))


def test_optima_are_those_of_the_members():
    members = FAMILY.grid(2)
    np.testing.assert_allclose(members.optima().J, [lqgap.solve(plant).J for plant in members], rtol=1e-10)


def test_a_hopeless_member_is_named_with_its_parameters():
    members = Finite(
        [lqgap.LQG([[a]], [[b]], [[1.0]]) for a, b in ((0.5, 1.0), (1.1, 0.0))],
        [[0.5], [1.1]],
        names=["pole"],
    )
    with pytest.raises(NotStabilizableError, match=r"member 1 \(pole = 1\.1\): \(A, B\) is not stabilisable"):
        members.optima()


def test_members_with_one_law_are_one_member():
    """A change of coordinates, and for p < n also a shift of noise between states, is invisible."""
    plant = random_plant(3, states=3, inputs=1, outputs=1)
    turned = change_coordinates(plant, np.random.default_rng(0).normal(size=(3, 3)))
    members = Finite([plant, random_plant(4, states=3, inputs=1, outputs=1), turned])
    assert len(members.unique()) == 2
    np.testing.assert_allclose(members.unique().parameters[:, 0], [0, 1])
    np.testing.assert_allclose(members.invariants()[0], members.invariants()[2], rtol=1e-6, atol=1e-8)


def test_laws_are_compared_with_those_nearby_alone(monkeypatch):
    members = FAMILY.sample(200, key=jax.random.key(0)).subset([*range(200), 7, 31])
    compared = []

    def count(members, vectors, vector, *, tolerance):
        compared.append(len(vectors))
        return same_law(members, vectors, vector, tolerance=tolerance)

    same_law = finite._same_law
    monkeypatch.setattr(finite, "_same_law", count)
    np.testing.assert_array_equal(members.unique().parameters, members.parameters[:200])
    assert sum(compared) < 10  # not 200 for each


def test_a_shift_of_noise_between_unseen_states_is_no_new_member():
    """X = X' with X C' = 0 and T with T (I + X - A X A') T' = I: unit noise again, the same law."""
    A, B, C = np.array([[0.7, 0.2], [0.1, 0.5]]), np.array([[1.0], [0.3]]), np.array([[1.0, 0.0]])
    X = np.diag([0.0, 0.4])
    T = np.linalg.inv(np.linalg.cholesky(np.eye(2) + X - A @ X @ A.T))
    other = lqgap.LQG(T @ A @ np.linalg.inv(T), T @ B, C @ np.linalg.inv(T))
    assert np.linalg.norm(T.T @ T - np.eye(2)) > 0.1
    assert len(Finite([lqgap.LQG(A, B, C), other]).unique()) == 1


def test_a_cover_of_a_class_is_made_of_its_members_and_covers_it():
    members = FAMILY.grid(9)
    cover = members.cover(0.3)
    assert 1 < len(cover) < len(members)
    assert cover.radius == 0.3
    distance = np.linalg.norm(members.invariants()[:, None] - cover.invariants()[None], axis=2).min(axis=1)
    assert distance.max() <= 0.3


def test_membership_goes_by_law():
    members = FAMILY.grid(3)
    assert members.contains(change_coordinates(members[4], [[1.0, 2.0], [0.0, 3.0]]))
    assert not members.contains(FAMILY.system([1.0, 1.5]))


def test_samples_are_members_and_repeat_for_a_key():
    members = FAMILY.grid(3)
    drawn = members.sample(20, key=jax.random.key(1), replace=True)
    assert {tuple(row) for row in np.asarray(drawn.parameters)} <= {
        tuple(row) for row in np.asarray(members.parameters)
    }
    np.testing.assert_array_equal(
        drawn.parameters, members.sample(20, key=jax.random.key(1), replace=True).parameters
    )
    assert members.grid(7) is members


def test_a_sample_has_no_member_twice():
    members = FAMILY.grid(3)
    drawn = members.sample(6, key=jax.random.key(1))
    assert len({tuple(row) for row in np.asarray(drawn.parameters).tolist()}) == 6
    with pytest.warns(LqgapWarning, match="only 9"):
        assert len(members.sample(10, key=jax.random.key(1))) == 9


BAD = {
    "empty": (dict(systems=[]), InvalidArgumentError, "plants is .., expected a list"),
    "one plant": (dict(systems=random_plant(0)), InvalidSystemError, "expected .member, state, state."),
    "other count": (dict(systems=[random_plant(0)], parameters=[[1.0], [2.0]]), InvalidArgumentError, "a row for each of 1 members"),
    "other names": (dict(systems=[random_plant(0)], parameters=[[1.0, 2.0]], names=["k"]), InvalidArgumentError, "one for each of the 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_malformed_class_raises(name):
    arguments, error, message = BAD[name]
    with pytest.raises(error, match=message):
        Finite(**arguments)


def test_values_that_were_unknown_under_tracing_are_checked_in_the_class():
    batch = jax.vmap(lambda q: lqgap.LQG([[0.5]], [[1.0]], [[1.0]], Q=[[q]]))(jnp.asarray([1.0, -1.0]))
    with pytest.raises(
        InvalidSystemError, match=r"Q of member 1 \(member = 1\) is not positive semidefinite"
    ):
        Finite(batch)
    batch = jax.vmap(lambda a: lqgap.LQG([[a]], [[1.0]], [[1.0]]))(jnp.asarray([0.5, jnp.nan]))
    with pytest.raises(InvalidSystemError, match=r"A of member 1 .* NaN"):
        Finite(batch)
    batch = jax.vmap(lambda w: lqgap.LQG(*[np.eye(2)] * 3, W=[[1.0, w], [0.0, 1.0]]))(jnp.asarray([0.0, 0.1]))
    with pytest.raises(InvalidSystemError, match=r"W of member 1 .* not symmetric"):
        Finite(batch)


def test_units_do_not_make_two_laws_one():
    large = [lqgap.LQG([[a]], [[1.0]], [[1e6]]) for a in (0.5, 0.8)]
    assert not Finite([large[0]]).contains(large[1])
    small = [lqgap.LQG([[0.5]], [[b]], [[1.0]], V=[[1e12]]) for b in (1e-3, 2e-3, 1e7)]
    assert len(Finite(small).unique()) == 3


def test_a_plant_of_more_states_is_told_apart_by_its_later_response():
    """The extra path arrives after as many steps as twice the members' states."""
    plain = lqgap.LQG([[0.5]], [[1.0]], [[1.0]])
    A = np.zeros((4, 4))
    A[0, 0], A[1, 2], A[2, 3], A[0, 1] = 0.5, 1.0, 1.0, 1.0
    W = np.diag([1.0, 0.0, 0.0, 0.0])
    late = lqgap.LQG(A, [[1.0], [0.0], [0.0], [1.0]], [[1.0, 0.0, 0.0, 0.0]], W=W)
    assert not Finite([plain]).contains(late)
    with pytest.raises(InvalidArgumentError, match="inputs, outputs"):
        Finite([plain]).contains(random_plant(0))


def test_a_hopeless_member_is_named_wherever_laws_are_compared():
    members = Finite([lqgap.LQG([[1.1]], [[0.0]], [[1.0]]), lqgap.LQG([[0.2]], [[1.0]], [[1.0]])])
    for use in (members.unique, lambda: members.cover(0.1), lambda: members.contains(members[1])):
        with pytest.raises(NotStabilizableError, match="member 0"):
            use()


@pytest.mark.parametrize("which", [[7], np.array([True])])
def test_a_subset_that_does_not_fit_is_refused(which):
    with pytest.raises(InvalidArgumentError, match="does not fit a class of 4"):
        FAMILY.grid(2).subset(which)


@pytest.mark.usefixtures("as_users_run_it")
def test_one_plant_and_a_batch_are_classes_too():
    plants = [random_plant(0), random_plant(1)]
    members = Finite(plants)
    assert Finite.of(members) is members
    assert len(Finite.of(lqgap.stack(plants))) == 2
    assert len(Finite.of(plants[0])) == 1
    with pytest.raises(lqgap.InvalidArgumentError, match="plants is a list, expected a finite class"):
        Finite.of(plants, name="plants")


@pytest.mark.usefixtures("as_users_run_it")
def test_several_members_are_a_subset():
    members = Finite([random_plant(0), random_plant(1)])
    with pytest.raises(InvalidArgumentError, match="subset"):
        members[0:1]
