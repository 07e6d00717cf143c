"""Results do not depend on the coordinates of the state, nor on the units of inputs and outputs.

Rotations followed by units up to six powers of ten apart, and inputs and outputs in other units with Q, R, V and
limits changed accordingly. A coordinate that is 10^6 times another keeps its relative precision, so that what is
computed agrees to rounding times the condition of the problem itself; training, ten updates in double precision,
amplifies that. A rotation *after* such units (x -> rotation units x) would lose covariances of 10^-12 in rounding of
1e-16 relative to those of one: 1e-4 is then all that is left, whatever is computed from them.
"""

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from units import SCALED, SI, moved_family, random_coordinates, servo

import lqgap as lg
from lqgap.adaptive import VTROptions
from lqgap.adaptive.vtr.calibration import calibrate
from lqgap.evaluation import closed_loop_radius, find_worst
from lqgap.policies import ModelBank
from lqgap.policies.stake import Probe
from lqgap.simulators import check_assumptions
from lqgap.training import TrainingOptions, find_stabilizer, train_robust

FEW = ["mass_spring_damper", "thermal_zones"]
MORE = ["dc_motor", "two_mass_spring", "boeing_747", "hanging_pendulum_cart"]
HORIZON = 20
everywhere = pytest.mark.parametrize(
    "name", [*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)]
)


@dataclass(frozen=True)
class Moved:
    """A family, and the same in other coordinates and units."""

    family: Any
    other: Any
    inputs: np.ndarray
    outputs: np.ndarray

    def classes(self):
        """A few members of both."""
        few = np.linspace(0, len(self.family.grid(2)) - 1, 4).round().astype(int)
        return tuple(family.grid(2).subset(few) for family in (self.family, self.other))


@functools.cache
def moved(name):
    family = getattr(lg.plants, name)()
    plant = family.nominal()
    random = np.random.default_rng(7)
    inputs, outputs = (10 ** random.uniform(-2, 2, count) for count in (plant.num_inputs, plant.num_outputs))
    T = random_coordinates(3, plant.num_states, decades=6)
    return Moved(family, moved_family(family, T, inputs=inputs, outputs=outputs), inputs, outputs)


@everywhere
def test_training_reaches_the_same_policy(name):
    case = moved(name)
    options = TrainingOptions(
        steps=10,
        validate_every=5,
        num_rollouts=16,
        validation_rollouts=32,
        receipt_rollouts=64,
        precision="float64",
    )
    results = []
    for members, units in zip(case.classes(), (np.ones_like(case.inputs), case.inputs), strict=True):
        bank = ModelBank(members.systems, horizon=HORIZON)
        results.append(
            train_robust(
                bank, members, horizon=HORIZON, key=jax.random.key(0), options=options, limits=(-units, units)
            )
        )
    one, other = results
    assert one.has_improved
    np.testing.assert_allclose(other.gaps.mean, one.gaps.mean, rtol=1e-6)
    np.testing.assert_allclose(other.policy.shaping, one.policy.shaping, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW + MORE)
def test_the_same_members_are_found_to_be_the_worst(name):
    case = moved(name)
    banks = [ModelBank(members.systems, horizon=HORIZON) for members in case.classes()]
    one, other = (
        find_worst(bank, family, key=jax.random.key(0), horizon=HORIZON, num_rollouts=4)
        for bank, family in zip(banks, (case.family, case.other), strict=True)
    )
    np.testing.assert_allclose(other.members.parameters[:4], one.members.parameters[:4], rtol=1e-6)
    np.testing.assert_allclose(other.gaps.mean[:4], one.gaps.mean[:4], rtol=1e-6)


@everywhere
def test_the_audit_finds_the_same(name):
    one, other = (check_assumptions(members) for members in moved(name).classes())
    for ours, theirs in zip(one.checks, other.checks, strict=True):
        verdicts = [(c.statement.split(";")[0], c.as_printed, c.repaired) for c in (ours, theirs)]
        assert verdicts[0] == verdicts[1]
        if "contract" in ours.statement:
            # The weight is bisected to 2e-3 of its distance from one.
            np.testing.assert_allclose(theirs.value, ours.value, rtol=1e-2 * (1 - min(ours.value, 0.99)))
        elif "bounded" not in ours.statement and "Phi" not in ours.statement:
            np.testing.assert_allclose(theirs.value, ours.value, rtol=1e-5, atol=1e-9, err_msg=ours.statement)


@everywhere
def test_a_probe_costs_as_much_and_is_as_strong_in_the_units_of_the_inputs(name):
    case, found = moved(name), []
    for members in case.classes():
        probe, count = Probe(members.systems, members.optima()), len(members)
        found.append(probe.plan(jnp.asarray(0), jnp.full(count, 1 / count)))
    (cost, direction), (other_cost, other_direction) = found
    # What is left of cancelled terms is relative to the largest probe, of twice J.
    np.testing.assert_allclose(other_cost, cost, rtol=1e-6, atol=1e-9 * float(probe.J[0]))
    np.testing.assert_allclose(other_direction, case.inputs * direction, rtol=1e-5)


@everywhere
def test_calibrated_constants_are_the_same(name):
    paper = VTROptions.as_in_the_paper(selection="likelihood")
    one, other = (calibrate(members, options=paper) for members in moved(name).classes())
    assert other.length == one.length
    for constant in ("psi", "beta", "state_bound"):
        np.testing.assert_allclose(
            getattr(other, constant), getattr(one, constant), rtol=1e-6, err_msg=constant
        )


@everywhere
def test_distances_and_covers_are_the_same(name):
    one, other = moved(name).classes()
    vectors = one.invariants()
    np.testing.assert_allclose(other.invariants(), vectors, rtol=1e-6, atol=1e-7 * np.abs(vectors).max())
    radius = 0.6 * float(np.linalg.norm(vectors - vectors[0], axis=1).max())
    np.testing.assert_array_equal(other.cover(radius).parameters, one.cover(radius).parameters)


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW + MORE)
def test_the_same_member_is_the_nearest(name):
    case = moved(name)
    one, other = case.classes()
    distances = [family.nearest(members[1]) for family, members in ((case.family, one), (case.other, other))]
    np.testing.assert_allclose(distances[1][0], distances[0][0], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW + MORE)
def test_a_cover_of_the_family_has_the_same_members(name):
    case = moved(name)
    one, _ = case.classes()
    vectors = one.invariants()
    radius = 1.5 * float(np.linalg.norm(vectors - vectors[0], axis=1).max())
    covers = [family.cover(radius) for family in (case.family, case.other)]
    np.testing.assert_array_equal(covers[1].parameters, covers[0].parameters)


@pytest.mark.parametrize(
    "name", ["mass_spring_damper", pytest.param("double_integrator", marks=pytest.mark.slow)]
)
def test_one_controller_stabilises_all_as_well(name):
    case = moved(name)
    radii = [
        [float(closed_loop_radius(controller, plant)) for plant in members]
        for members in case.classes()
        for controller in [find_stabilizer(members)]
    ]
    # The search ends where the gradient is small, 1e-5 in BFGS: controllers agree to the root of what costs do.
    np.testing.assert_allclose(radii[1], radii[0], rtol=1e-2)


DEGREES = 180 / np.pi
IN_UNITS = {  # of the state, of volts and of radians
    "scaled state": (SCALED, 1.0, 1.0),
    "degrees": ((DEGREES, DEGREES, 1.0), 1.0, DEGREES),
    "milliradians, millivolts": ((1e3, 1e3, 1e3), 1e3, 1e3),
}


@functools.cache
def trained_servo(precision, scale=SI, volts=1.0, radians=1.0):
    options = TrainingOptions(steps=20, validate_every=5, precision=precision)
    family = moved_family(servo(scale), np.eye(3), inputs=[volts], outputs=[radians])
    members = family.grid(2)
    bank, limit = ModelBank(members.systems, horizon=100), 24 * volts
    return train_robust(
        bank, members, horizon=100, key=jax.random.key(0), options=options, limits=(-limit, limit)
    )


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("units", IN_UNITS)
def test_a_servo_trains_as_well_in_any_units(units, precision):
    one, other = trained_servo(precision), trained_servo(precision, *IN_UNITS[units])
    assert other.improvement > 0.65
    assert other.num_skipped == 0
    np.testing.assert_allclose(other.gaps.mean, one.gaps.mean, rtol=1e-6)


@pytest.mark.parametrize("decades", [0, 6])
def test_what_cannot_be_stabilised_or_seen_cannot_in_other_coordinates(seed, decades):
    A = np.asarray([[1.1, 0.0, 0.0], [0.2, 0.8, 0.3], [0.0, 0.1, 0.5]])  # nothing moves the first state
    T = random_coordinates(seed, 3, decades=decades)
    inverse = np.linalg.inv(T)
    noise = {"W": T @ T.T, "S0": T @ T.T}
    with pytest.raises(lg.NotStabilizableError):
        lg.solve(lg.LQG(T @ A @ inverse, T @ [[0.0], [1.0], [0.0]], np.eye(3)[:2] @ inverse, **noise))
    with pytest.raises(lg.NotDetectableError):
        lg.solve(lg.LQG(T @ A.T @ inverse, T @ np.eye(3)[:, :2], [[0.0, 1.0, 0.0]] @ inverse, **noise))
