import functools

import numpy as np
import pytest
from records import records
from springs import FAMILY, grid

import lqgap
from lqgap.errors import InvalidArgumentError
from lqgap.identification.excitation import choose_probing, probing_for_gains
from lqgap.identification.fit import fit_parameters
from lqgap.simulators import Finite, ParameterBox


@functools.cache
def servers():
    return lqgap.plants.web_server(coupling=1.0, persistence=1.0).grid(2)


@pytest.mark.parametrize("sigma_u", [0.0, 2.0])
def test_rates_are_what_likelihoods_grow_by(sigma_u):
    """The mean of 16 records of 2000 steps, within four of its standard errors, for a pair far apart."""
    probing = choose_probing(grid(2), num_steps=100)
    i, j, steps = 0, 3, 2000
    growth = []
    for y, u in records(grid(2)[i], steps=steps, seed=0, count=16, sigma_u=sigma_u):
        ratio = lqgap.log_likelihood(grid(2)[i], y, u) - lqgap.log_likelihood(grid(2)[j], y, u)
        growth.append(
            float(ratio[-1] - ratio[100]) / (steps - 101)
        )  # filters have settled after a hundred steps
    rate = probing.passive[i, j] + sigma_u**2 * probing.active[i, j]
    assert abs(np.mean(growth) - rate) < 4 * np.std(growth, ddof=1) / 4
    assert np.std(growth, ddof=1) < rate  # else the test could not fail


def test_the_hardest_pair_gets_just_what_it_needs():
    probing = choose_probing(grid(2), num_steps=300, delta=0.1)
    rates = probing.rates() + np.where(np.eye(4), np.inf, 0)
    np.testing.assert_allclose(300 * rates.min(), probing.needed, rtol=1e-9)
    assert np.unravel_index(np.argmin(rates), rates.shape) == probing.pair
    # D - z (2 D)^1/2 = log(N / delta), with the normal quantile z of 0.9
    np.testing.assert_allclose(
        probing.needed - 1.2815515655 * np.sqrt(2 * probing.needed), np.log(40), rtol=1e-8
    )


def test_the_chosen_amplitude_refutes_the_hardest_other():
    """In about 1 - delta of all runs: 60 of them, three standard errors; with half the amplitude, it does not."""
    probing = choose_probing(grid(2), num_steps=300, delta=0.1)
    truth, other = (grid(2)[index] for index in probing.pair)

    def share_refuted(sigma_u):
        runs = records(truth, steps=300, seed=0, count=60, sigma_u=sigma_u, settle=0)
        ratios = [
            lqgap.log_likelihood(truth, y, u)[-1] - lqgap.log_likelihood(other, y, u)[-1] for y, u in runs
        ]
        return np.mean(np.array(ratios) >= np.log(len(grid(2)) / 0.1))

    assert share_refuted(probing.sigma_u) >= 0.9 - 3 * np.sqrt(0.9 * 0.1 / 60)
    assert share_refuted(probing.sigma_u / 2) < 0.5


@pytest.mark.slow
def test_where_inputs_do_little_the_amplitude_is_large():
    """A unit input moves a web server by a thousandth of its noise."""
    assert choose_probing(servers(), num_steps=1000).sigma_u.min() > 100
    longer, shorter = (choose_probing(servers(), num_steps=steps).sigma_u for steps in (4000, 1000))
    assert np.all(longer < shorter)


def test_units_of_the_input_scale_the_amplitude():
    base = choose_probing(grid(2), num_steps=300)
    scaled = Finite([lqgap.LQG(p.A, 100 * p.B, p.C, R=1e4 * p.R) for p in grid(2)])
    other = choose_probing(scaled, num_steps=300)
    np.testing.assert_allclose(other.sigma_u, base.sigma_u / 100, rtol=1e-9)
    np.testing.assert_allclose(other.cost, base.cost, rtol=1e-9)


@pytest.mark.slow
def test_gains_are_told_as_well_as_promised():
    """The Fisher information of the gain alone, by the fit's exact filters: T steps hold all but the transient."""
    sigma_u = probing_for_gains(Finite([FAMILY.nominal()]), num_steps=3000, error=0.1)
    gain_only = ParameterBox(lambda gain: FAMILY.build(stiffness=2.25, gain=gain), {"gain": (1.0, 5.0)})
    errors = []
    for y, u in records(FAMILY.nominal(), steps=3000, seed=0, count=4, sigma_u=sigma_u):
        found = fit_parameters(gain_only, y, u, num_starts=1)
        errors.append(found.standard_errors[0] / 3.0)  # the nominal gain
    # Information is a sum of squares of 3000 correlated terms: a few per cent, and half of it in its root.
    np.testing.assert_allclose(errors, 0.1, rtol=0.1)


@pytest.mark.slow
def test_every_input_gets_the_amplitude_that_its_own_gain_needs():
    server = Finite([servers()[0]])
    both = probing_for_gains(server, num_steps=100)
    single = [
        probing_for_gains(Finite([lqgap.LQG(p.A, p.B[:, [j]], p.C)]), num_steps=100)[0]
        for p in server
        for j in (0, 1)
    ]
    np.testing.assert_allclose(both, single, rtol=1e-9)
    np.testing.assert_allclose(probing_for_gains(server, num_steps=400, error=0.05), both, rtol=1e-9)
    assert both.max() > 100


def test_the_cost_is_what_random_inputs_add():
    """A linear policy cannot be random: the same second moments come from noise that enters with the input."""
    probing = choose_probing(grid(2), num_steps=300)
    for plant, cost in zip(grid(2), probing.cost, strict=True):
        still = lqgap.policies.LinearDynamic(Dc=[[0.0]])
        louder = lqgap.LQG(
            plant.A,
            plant.B,
            plant.C,
            Q=plant.Q,
            R=plant.R,
            W=plant.W + probing.sigma_u[0] ** 2 * plant.B @ plant.B.T,
        )
        added = lqgap.exact_average_cost(still, louder) - lqgap.exact_average_cost(still, plant)
        np.testing.assert_allclose(cost, added + probing.sigma_u[0] ** 2 * plant.R[0, 0], rtol=1e-9)


def test_plants_that_noise_tells_apart_need_no_probing():
    quiet, loud = (lqgap.LQG([[0.5]], [[1.0]], [[1.0]], V=[[v]]) for v in (0.1, 100.0))
    probing = choose_probing(Finite([quiet, loud]), num_steps=1000)
    assert np.all(probing.sigma_u == 0.0)


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    cases = [
        (FAMILY, {"num_steps": 10}, "expected a finite class"),
        (grid(2), {"num_steps": 0}, "num_steps is 0"),
        (grid(2), {"num_steps": 10, "delta": 1.0}, "delta is 1.0"),
        (Finite([grid(2)[0]]), {"num_steps": 10}, "one member only"),
        (Finite([grid(2)[0], grid(2)[0]]), {"num_steps": 10}, "members 0 and 1 .* same way"),
        (lqgap.plants.laplacian().grid(2), {"num_steps": 10}, "unstable open loop"),
    ]
    for members, options, message in cases:
        with pytest.raises(InvalidArgumentError, match=message):
            choose_probing(members, **options)
    cases = [
        (FAMILY, {"num_steps": 10}, "expected a finite class"),
        (grid(2), {"num_steps": 10, "error": 0.0}, "error is 0.0"),
        (
            Finite([lqgap.LQG([[0.5]], [[0.0]], [[1.0]])]),
            {"num_steps": 10},
            "input 0 of member 0 .* no effect",
        ),
    ]
    for members, options, message in cases:
        with pytest.raises(InvalidArgumentError, match=message):
            probing_for_gains(members, **options)
