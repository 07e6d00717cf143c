"""Margins against the eigenvalues of changed loops, against python-control, and in other coordinates."""

import warnings

import equinox as eqx
import jax
import numpy as np
import pytest
from random_systems import random_plant

import lqgap as lg
from lqgap.interop import to_control
from lqgap.policies import (
    BoundedChanges,
    FiniteHorizonLQG,
    LinearDynamic,
    ModelBank,
    Saturated,
    StationaryLQG,
    Zero,
)
from lqgap.simulators.plants import FAMILIES
from lqgap.systems import change_coordinates, delay_input

OMEGA = np.unique(np.concatenate([np.geomspace(1e-5, 3.14, 2000), np.linspace(1e-5, 3.14, 2000)]))


def optimal(plant):
    return StationaryLQG(plant, filters="steady")


def largest_modulus(policy, plant, factor, loop):
    """Of the eigenvalues of the closed loop with a complex factor in one input, or factors in all."""
    one, plant = jax.device_get((policy.at(0), plant))
    scale = np.ones(plant.num_inputs, complex)
    scale[loop] = factor
    B = plant.B * scale
    closed = np.block([[plant.A + B @ one.Dc @ plant.C, B @ one.Cc], [one.Bc @ plant.C, one.Ac]])
    return np.abs(np.linalg.eigvals(closed)).max()


def test_at_its_margins_a_loop_has_an_eigenvalue_on_the_circle_and_inside_of_them_none(seed):
    plant = random_plant(seed, radius=1.1)
    policy = optimal(plant)
    found = lg.margins(policy, plant)
    for loop in range(2):
        low, high, phase = (float(value[loop]) for value in (found.gain_low, found.gain_high, found.phase))
        limits = [(low, low > 0), (high, high < np.inf)]
        if phase < np.inf:
            limits.append((np.exp(1j * np.radians(phase)), True))
        for limit, is_reached in limits:
            if not is_reached:
                continue
            # An eigenvalue of a well-conditioned loop is known to rounding, a margin to the root of it.
            np.testing.assert_allclose(largest_modulus(policy, plant, limit, loop), 1, atol=1e-7)
        inside = [
            *np.linspace(low, min(high, 100), 40)[1:-1],
            *np.exp(1j * np.radians(np.linspace(0, min(phase, 180), 40)[:-1])),
        ]
        assert max(largest_modulus(policy, plant, factor, loop) for factor in inside) < 1


def test_factors_of_the_disk_leave_all_loops_stable_at_once_and_larger_ones_need_not(seed):
    plant = random_plant(seed, radius=1.1)
    policy = optimal(plant)
    found = lg.margins(policy, plant)
    assert found.disk_of_all <= found.disk.min() * (1 + 1e-9)
    rng = np.random.default_rng(seed)
    for _ in range(50):
        d = 0.999 * found.disk_of_all * np.exp(2j * np.pi * rng.random(2))
        assert largest_modulus(policy, plant, (1 + d / 2) / (1 - d / 2), slice(None)) < 1
    for loop in range(2):
        d = 1.01 * found.disk[loop] * np.exp(2j * np.pi * np.linspace(0, 1, 400))
        assert max(largest_modulus(policy, plant, (1 + x / 2) / (1 - x / 2), loop) for x in d) > 1


def test_a_loop_bears_as_many_steps_of_delay_as_it_says():
    plant = lg.plants.double_integrator().nominal()
    policy = optimal(plant)
    delay = float(lg.margins(policy, plant).delay[0])
    borne, too_long = (
        largest_modulus(policy, delay_input(plant, steps), 1, 0) for steps in (int(delay), int(delay) + 1)
    )
    assert borne < 1 < too_long
    assert delay > 1


def loop_at(plant, policy, index, control):
    """Loop `index` of python-control, the others closed."""
    loop = -to_control(policy, sampling_time=1.0) * to_control(plant, sampling_time=1.0)
    others = [k for k in range(plant.num_inputs) if k != index]
    A = loop.A - loop.B[:, others] @ loop.C[others]
    return control.ss(A, loop.B[:, [index]], loop.C[[index]], 0, 1.0)


@pytest.mark.parametrize("name", FAMILIES)
def test_margins_are_those_of_python_control(name):
    control = pytest.importorskip("control")
    plant = FAMILIES[name]().sample(1, key=jax.random.key(1), replace=True)[0]
    policy = optimal(plant)
    found = lg.margins(policy, plant)
    for index in range(plant.num_inputs):
        loop = loop_at(plant, policy, index, control)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a pole at one: the response there is infinite
            # Of its response, since its polynomials lose all digits on plants of order five with a pole at one.
            response = control.FRD(loop, OMEGA, smooth=True)
            gains, phases, distances, *_ = control.stability_margins(response, returnall=True)
            coarse = np.argmin(control.disk_margins(loop, OMEGA, returnall=True)[0])
            around = np.linspace(OMEGA[max(coarse - 1, 0)], OMEGA[min(coarse + 1, len(OMEGA) - 1)], 500)
            disk = control.disk_margins(loop, around)[0]
            ends = np.array([loop(z).real for z in (1.0, -1.0)])  # which its response leaves out
        gains = np.concatenate([gains, -1 / ends[np.isfinite(ends) & (ends < 0)]])
        theirs = [gains[gains < 1].max(initial=0), gains[gains > 1].min(initial=np.inf)]
        ours = [found.gain_low[index], found.gain_high[index]]
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.phase[index], np.abs(phases).min(initial=np.inf), rtol=1e-6)
        nearest = min(distances.min(initial=np.inf), *np.abs(1 + ends))
        np.testing.assert_allclose(1 / found.sensitivity[index], nearest, rtol=1e-6)
        np.testing.assert_allclose(found.disk[index], disk, rtol=1e-6)


def test_the_disk_margin_of_all_loops_is_at_most_that_of_structured_singular_values():
    control = pytest.importorskip("control")
    pytest.importorskip("slycot")
    plant = lg.plants.boeing_747().nominal()
    policy = optimal(plant)
    loop = -to_control(policy, sampling_time=1.0) * to_control(plant, sampling_time=1.0)
    structured = control.disk_margins(loop, OMEGA)[0]
    ours = lg.margins(policy, plant).disk_of_all
    assert 0.5 * structured < ours <= structured * (1 + 1e-6)
    unit = np.sqrt(np.diagonal(plant.R))
    response = control.ss([], [], [], np.eye(2), 1.0).feedback(loop).frequency_response(OMEGA).frdata
    scaled = unit[:, None] * (np.moveaxis(response, 2, 0) - np.eye(2) / 2) / unit
    np.testing.assert_allclose(ours, 1 / np.linalg.norm(scaled, 2, axis=(1, 2)).max(), rtol=1e-6)


def test_a_peak_of_any_width_is_found():
    """S of a static gain on a resonance whose peak is as narrow as 1e-7: closed form at its height."""
    radius, angle, gain = 1 - 1e-7, 1.0, 1e-8
    A = radius * np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    plant = lg.LQG(A, [[0.0], [1.0]], [[1.0, 0.0]])
    policy = LinearDynamic(Dc=[[gain]])
    omega = angle + np.linspace(-1e-6, 1e-6, 200_001)
    z = np.exp(1j * omega)
    S = 1 / (
        1
        - gain * radius * np.sin(angle) / ((z - radius * np.cos(angle)) ** 2 + (radius * np.sin(angle)) ** 2)
    )
    # Points 1e-11 apart, of a peak 1e-7 wide: its top is missed by the square of 1e-4.
    np.testing.assert_allclose(lg.margins(policy, plant).sensitivity, np.abs(S).max(), rtol=1e-7)


def test_margins_do_not_depend_on_coordinates_or_units(seed):
    plant = random_plant(seed, radius=1.1)
    found = lg.margins(optimal(plant), plant)
    T = np.diag([1e4, 1.0, 1e-4]) @ np.random.default_rng(seed).normal(size=(3, 3))
    unit = np.diag([1e3, 1e-3])  # u = unit @ (u in other units)
    other = change_coordinates(plant, T)
    other = eqx.tree_at(
        lambda p: (p.B, p.R), other, (other.B @ unit, unit @ np.diag(np.diagonal(plant.R)) @ unit)
    )
    again = LinearDynamic(*(vars(optimal(plant).at(0)).values()))
    again = eqx.tree_at(
        lambda p: (p.Cc, p.Dc), again, (np.linalg.inv(unit) @ again.Cc, np.linalg.inv(unit) @ again.Dc)
    )
    for name, value in vars(lg.margins(again, other)).items():
        np.testing.assert_allclose(value, getattr(found, name), rtol=1e-6, err_msg=name)


def test_within_limits_a_loop_has_the_margins_of_the_policy_inside(seed):
    plant = random_plant(seed)
    policy = optimal(plant)
    for limited in (Saturated(policy, (-1, 1)), BoundedChanges(Saturated(policy, (-1, 1)), (-2, 2))):
        assert eqx.tree_equal(lg.margins(limited, plant), lg.margins(policy, plant))


def test_an_unstable_loop_has_no_margins_and_no_loop_at_all_has_all_of_them():
    unstable = lg.LQG([[1.2]], [[1.0]], [[1.0]])
    none = lg.margins(Zero(num_inputs=1, num_outputs=1), unstable)
    assert [float(v.squeeze()) for v in vars(none).values()] == [1, 1, 0, 0, 0, np.inf, 0]
    stable = lg.LQG([[0.5]], [[1.0]], [[1.0]])
    every = lg.margins(Zero(num_inputs=1, num_outputs=1), stable)
    assert [float(v.squeeze()) for v in vars(every).values()] == [0, np.inf, np.inf, np.inf, 2, 1, 2]


def test_of_a_class_every_kind_of_margin_is_told_where_it_is_least():
    members = lg.plants.mass_spring_damper().grid(3)
    policy = optimal(members[0])
    found = lg.margins(policy, members)
    each = [lg.margins(policy, plant) for plant in members]
    for name, (value, index) in found.smallest().items():
        values = [float(getattr(one, name).squeeze()) for one in each]
        worst = max if name in ("gain_low", "sensitivity") else min
        assert value == worst(values) == values[index]


@pytest.mark.usefixtures("as_users_run_it")
def test_policies_without_margins_are_refused():
    plant = lg.LQG([[0.9]], [[1.0]], [[1.0]])
    with pytest.raises(lg.InvalidArgumentError, match="ModelBank, which is not linear"):
        lg.margins(ModelBank(lg.stack([plant])), plant)
    with pytest.raises(lg.InvalidArgumentError, match="ends at step 5"):
        lg.margins(FiniteHorizonLQG(plant, 5), plant)
    with pytest.raises(lg.InvalidArgumentError, match="do not fit"):
        lg.margins(Zero(num_inputs=1, num_outputs=2), plant)
