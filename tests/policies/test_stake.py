import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.errors import InvalidArgumentError
from lqgap.policies.stake import Probe, choose_colour


@pytest.fixture(scope="module")
def members():
    return lg.plants.spare_actuator(spare=[0.0, 0.5, -0.5, 0.1]).grid(4)


@pytest.fixture(scope="module")
def probe(members):
    return Probe(members.systems, members.optima())


WEIGHTS = np.array([0.5, 0.3, 0.15, 0.05])


def rates(probe, chosen, weights):
    """Stake, free rate and the matrix G, by loops."""
    count, m = len(weights), probe.root.shape[-1]
    lost = [float(weights[j] * probe.excess[chosen, j]) for j in range(count)]
    stake, free, G = sum(lost), 0.0, np.zeros((m, m))
    for i in range(count):
        for j in range(count):
            free += float(weights[i] * probe.rates[chosen, i, j, 0]) * lost[j] / stake
            G += float(weights[i]) * np.asarray(probe.rates[chosen, i, j, 1:]).reshape(m, m) * lost[j] / stake
    return stake, free, G


@pytest.mark.parametrize("chosen", range(4))
def test_the_size_has_the_least_squared_cost_for_its_information(members, probe, chosen):
    cost, direction = probe.plan(jnp.asarray(chosen), jnp.asarray(WEIGHTS))
    stake, free, G = rates(probe, chosen, WEIGHTS)
    gain = float(direction @ G @ direction)
    sizes = np.linspace(1e-9, 5 * stake, 50_001)
    ratio = (stake + sizes) ** 2 / (free + sizes * gain)
    best = sizes[np.argmin(ratio)]
    limit = min(1 / gain, 2 * float(members.optima().J[chosen]))
    np.testing.assert_allclose(float(cost), min(best, limit), atol=sizes[1] - sizes[0])


@pytest.mark.parametrize("chosen", range(4))
def test_the_direction_is_the_cheapest_of_all(members, probe, chosen):
    _, direction = probe.plan(jnp.asarray(chosen), jnp.asarray(WEIGHTS))
    _, _, G = rates(probe, chosen, WEIGHTS)
    M = np.asarray(members.optima().M[chosen])
    np.testing.assert_allclose(direction @ M @ direction, 1.0, rtol=1e-9)
    angles = np.linspace(0, np.pi, 2_001)
    others = np.stack([np.cos(angles), np.sin(angles)])
    others = others / np.sqrt(np.einsum("at,ab,bt->t", others, M, others))
    best = np.max(np.einsum("at,ab,bt->t", others, G, others))
    # The angles are 0.0016 apart; powers of G leave a hundredth where its eigenvalues are close.
    np.testing.assert_allclose(direction @ G @ direction, best, rtol=1e-2)


def test_nothing_is_added_where_nothing_is_at_stake(probe):
    for certain in (0, 1):
        cost, _ = probe.plan(jnp.asarray(certain), jnp.eye(4)[certain])
        assert float(cost) == 0.0


def test_what_shows_by_itself_is_not_probed_for():
    """Acting by one sign of a gain, the other sign ruins the plant, and shows."""
    members = lg.plants.unknown_sign().grid(2)
    probe = Probe(members.systems, members.optima())
    cost, _ = probe.plan(jnp.asarray(0), jnp.asarray([0.6, 0.4]))
    assert float(cost) == 0.0


def test_a_task_that_ends_is_not_probed_at_its_end(probe):
    at = [float(probe.plan(jnp.asarray(0), jnp.asarray(WEIGHTS), left)[0]) for left in (jnp.inf, 1000.0, 3.0)]
    assert at[0] == at[1] > 0
    assert at[2] == 0.0


def test_no_input_gets_more_than_is_allowed(members):
    probe = Probe(members.systems, members.optima(), probe=[0.0, 0.05])
    cost, direction = probe.plan(jnp.asarray(0), jnp.asarray(WEIGHTS))
    added = np.asarray([probe.input(cost, direction, jnp.asarray([xi, 0.0])) for xi in (-9.0, 0.1, 9.0)])
    np.testing.assert_allclose(added[:, 0], 0.0)
    np.testing.assert_allclose(added[[0, 2], 1], [-0.05, 0.05])
    assert 0 < abs(added[1, 1]) < 0.05


@pytest.mark.parametrize(("pole", "sign"), [(0.9, 1.0), (-0.9, -1.0)])
def test_a_probe_has_variance_one_and_the_frequency_at_which_members_differ(pole, sign):
    members = lg.plants.spare_actuator(pole=pole).grid(3)
    assert choose_colour(members.systems, members.optima()).real * sign > 0.8
    probe = Probe(members.systems, members.optima())

    def step(xi, key):
        after = probe.move(xi, key)
        return after, after[0]

    keys = jax.random.split(jax.random.key(0), 20_000)
    _, course = jax.lax.scan(step, probe.begin(jax.random.key(1)), keys)
    # Values 20 steps apart are nearly independent: of 1000 of them the variance is known to 5 %.
    np.testing.assert_allclose(np.var(course), 1.0, atol=0.2)
    np.testing.assert_allclose(np.corrcoef(course[1:], course[:-1])[0, 1], 0.9 * sign, atol=0.02)


def test_of_many_members_the_heaviest_are_weighed():
    members = lg.plants.spare_actuator(spare=np.linspace(-0.5, 0.5, 41).tolist()).grid(41)
    probe = Probe(members.systems, members.optima())
    weights = np.zeros(41)
    weights[[3, 20, 38]] = 0.2, 0.5, 0.3
    cost, direction = probe.plan(jnp.asarray(20), jnp.asarray(weights))
    few = Probe(*jax.tree.map(lambda leaf: leaf[np.array([3, 20, 38])], (members.systems, members.optima())))
    expected, along = few.plan(jnp.asarray(1), jnp.asarray(weights[[3, 20, 38]]))
    np.testing.assert_allclose(cost, expected, rtol=1e-6)
    np.testing.assert_allclose(direction, along, rtol=1e-6, atol=1e-9)


def test_many_members_that_are_alike_do_not_hide_one_on_which_much_is_lost():
    members = lg.Finite([lg.LQG([[0.9]], [[0.6, spare]], [[1.0]]) for spare in 40 * [0.0] + [0.5]])
    cost, direction = Probe(members.systems, members.optima()).plan(
        jnp.asarray(0), jnp.asarray(40 * [0.99 / 40] + [0.01])
    )
    two = members.subset([0, 40])
    expected, along = Probe(two.systems, two.optima()).plan(jnp.asarray(0), jnp.asarray([0.99, 0.01]))
    assert expected > 0
    np.testing.assert_allclose(cost, expected, rtol=1e-6)
    np.testing.assert_allclose(direction, along, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "wrong", ["on", -0.1, [0.1, -0.2], float("nan"), [], None, [[0.1]], [0.1, 0.2, 0.3], True]
)
def test_what_makes_no_sense_as_a_probe_is_refused(members, wrong):
    with pytest.raises(InvalidArgumentError, match="probe"):
        Probe(members.systems, members.optima(), probe=wrong)
