import functools
import types

import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.errors import InvalidArgumentError
from lqgap.policies import FiniteHorizonLQG, ModelBank, StationaryLQG
from lqgap.theory import certify
from lqgap.theory.lower_bounds.overactuated import nominal_plant, overactuated_class

HORIZON = 25


@functools.cache
def members():
    return overactuated_class(horizon=HORIZON, c=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False])
def test_a_linear_policy_is_bracketed_exactly(ends):
    policy = FiniteHorizonLQG(nominal_plant(), HORIZON) if ends else StationaryLQG(nominal_plant())
    certificate = certify(policy, members(), horizon=HORIZON, key=jax.random.key(0), ends=ends)
    exact = [float(lg.exact_gap(policy, plant, horizon=HORIZON, ends=ends)) for plant in members()]
    np.testing.assert_allclose(certificate.gaps, exact)
    assert certificate.upper == max(certificate.gaps)
    assert np.all(certificate.stderr == 0)
    assert 0 < certificate.lower < certificate.upper
    np.testing.assert_allclose(certificate.factor, max(exact) / certificate.lower)
    assert certificate.factor < 2


@pytest.mark.slow
def test_other_policies_are_bracketed_with_confidence():
    bank = ModelBank(members().systems, horizon=HORIZON)
    wide, narrow = (
        certify(bank, members(), horizon=HORIZON, key=jax.random.key(0), num_rollouts=256, delta=delta)
        for delta in (0.01, 0.4)
    )
    estimate = lg.gap(bank, members(), horizon=HORIZON, key=jax.random.key(0), num_rollouts=256)
    np.testing.assert_allclose(wide.gaps, estimate.mean)
    assert estimate.worst < narrow.upper < wide.upper
    # P(N > 2.576) = 0.01 / 2, shared by two members; gaps are skewed to the right, which makes limits wider.
    normal = np.max(estimate.mean + 2.575829 * estimate.stderr)
    assert normal < wide.upper < estimate.worst + 1.5 * (normal - estimate.worst)
    assert wide.lower == narrow.lower
    assert wide.doubt == ""


@pytest.mark.slow
def test_nothing_is_certified_from_too_few_rollouts():
    bank = ModelBank(members().systems, horizon=HORIZON)
    certificate = certify(bank, members(), horizon=HORIZON, key=jax.random.key(0), num_rollouts=64)
    assert certificate.upper == certificate.factor == np.inf
    assert "64 rollouts are too few" in certificate.doubt


@pytest.mark.slow
def test_limits_widen_the_bracket_of_a_linear_policy():
    policy, arguments = (
        FiniteHorizonLQG(nominal_plant(), HORIZON),
        dict(horizon=HORIZON, key=jax.random.key(0)),
    )
    free = certify(policy, members(), **arguments)
    limited = certify(policy, members(), **arguments, num_rollouts=512, limits=(-0.2, 0.2))
    assert limited.lower == free.lower
    assert np.min(limited.gaps - 4 * limited.stderr) > np.max(free.gaps)


@pytest.mark.slow
def test_a_class_of_one_certifies_no_factor():
    plant = nominal_plant()
    bank = ModelBank(lg.stack([plant]), horizon=HORIZON)
    certificate = certify(bank, plant, horizon=HORIZON, key=jax.random.key(0), num_rollouts=64)
    assert certificate.lower == 0
    assert certificate.factor == np.inf


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("delta", [0, 1.0, "small"])
def test_a_confidence_must_be_a_probability(delta):
    with pytest.raises(lg.LqgapError, match="delta"):
        certify(
            FiniteHorizonLQG(nominal_plant(), HORIZON),
            members(),
            horizon=HORIZON,
            key=jax.random.key(0),
            delta=delta,
        )


@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_no_class_and_no_family_is_named():
    with pytest.raises(InvalidArgumentError, match="members is a list"):
        certify(FiniteHorizonLQG(nominal_plant(), 5), [nominal_plant()], horizon=5, key=jax.random.key(0))


def build(pole, gain):
    return lg.LQG([[pole]], [[gain]], [[1.0]])


@functools.cache
def family():
    return lg.ParameterBox(build, {"pole": (0.5, 0.95), "gain": (0.5, 2.0)})


@pytest.fixture
def bound_of_ranges(monkeypatch):
    """A kind of bound over ranges, much larger than those of members."""
    found = types.SimpleNamespace(
        value=0.5, kind="stand-in", spread=0.0, confidence=0.99, prior="", reasons=("few steps",)
    )
    monkeypatch.setattr("lqgap.theory.lower_bounds.ranges.BOUNDS", {"stand-in": lambda *_, **__: found})


@pytest.mark.slow
@pytest.mark.usefixtures("bound_of_ranges")
def test_over_the_ranges_of_a_family_a_linear_policy_is_no_better_than_on_any_grid_of_it():
    """The search climbs the mean of few rollouts, whose maximiser need not be that of the gap itself."""
    policy = StationaryLQG(build(0.7, 1.0))
    task = dict(horizon=HORIZON, key=jax.random.key(0), num_rollouts=64)
    of_ranges, of_grid = (certify(policy, plants, **task) for plants in (family(), family().grid(5)))
    assert of_ranges.upper >= 0.98 * of_grid.upper
    exact = [float(lg.exact_gap(policy, plant, horizon=HORIZON)) for plant in of_ranges.members]
    np.testing.assert_allclose(of_ranges.gaps, exact)
    assert (of_ranges.over, of_ranges.lower, of_ranges.bound.kind) == ("ranges", 0.5, "stand-in")
    np.testing.assert_allclose(of_ranges.confidence, 0.94)
    assert (of_grid.over, of_grid.confidence) == ("class", 0.95)
    assert of_grid.lower < 0.5
    assert "stand-in" not in of_grid.bound.by_kind


@pytest.mark.slow
def test_what_a_search_found_is_judged_on_fresh_noise_with_confidence_in_all_of_it(monkeypatch):
    monkeypatch.setattr("lqgap.theory.lower_bounds.ranges.BOUNDS", {})  # the others are faster
    bank = ModelBank(family().grid(3).systems, horizon=HORIZON)
    task = dict(horizon=HORIZON, key=jax.random.key(0))
    certificate = certify(bank, family(), num_rollouts=512, **task)
    found = lg.find_worst(bank, family(), num_rollouts=128, **task)
    assert found.gaps.num_rollouts == 512
    np.testing.assert_allclose(certificate.gaps, found.gaps.mean)
    np.testing.assert_allclose(certificate.upper, found.gaps.upper_limit(certificate.delta))
    assert len(certificate.members) == len(found.members)
    on_grid = lg.gap(bank, family().grid(5), num_rollouts=512, **task)
    assert certificate.upper > on_grid.worst - 3 * on_grid.worst_stderr
    assert 0 < certificate.lower < certificate.upper
