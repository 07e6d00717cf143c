import functools

import jax
import numpy as np
from naive_vtr import STEPS, random_class, random_noise, stream

import lqgap as lg
from lqgap.adaptive import LQGVTR, VTRConstants, VTROptions, run_many
from lqgap.identification import estimate_markov
from lqgap.identification.selection import coordinate_distances
from lqgap.simulators import Finite
from lqgap.systems.natural import common_coordinates

HORIZON, NUM_RUNS = 2_000, 60


def test_the_set_at_the_end_of_the_warm_up_is_that_of_the_record_so_far():
    plants, num_warmup, length, C_w = random_class(3, count=6), 60, 8, 40.0
    constants = VTRConstants(length=length, num_warmup=num_warmup, sigma_u=2.0, C_w=C_w, beta=1e9)
    options = VTROptions.as_in_the_paper(alarm="none")
    learner = LQGVTR(Finite(plants), horizon=STEPS, constants=constants, options=options)
    u, y, told = stream(learner, plants[1], random_noise(1, plants[1]), jax.random.key(1))
    estimate = estimate_markov(y[: num_warmup + 1], u[: num_warmup + 1], length=length, ridge=1.0)
    members = Finite(plants)
    moved = members.in_coordinates(common_coordinates(members.systems))
    distances = coordinate_distances(moved, estimate, method="balanced")
    left = distances <= np.sqrt(C_w / num_warmup)
    assert 0 < np.sum(left) < 6
    np.testing.assert_array_equal(told.plausible[num_warmup], left)
    assert not np.any(np.asarray(told.plausible)[num_warmup:] & ~left)


@functools.cache
def learner():
    signs = lg.plants.unknown_sign().grid(2)
    return LQGVTR(signs, horizon=HORIZON, options=VTROptions.as_in_the_paper()), signs


def test_as_in_the_paper_everything_is_calibrated_in_one_call():
    paper, signs = learner()
    assert float(paper.constants.delta) == 1 / HORIZON
    assert int(paper.constants.num_warmup) >= 128
    cost = float(paper.constants.sigma_u) ** 2 * np.mean(np.trace(signs.optima().M, axis1=1, axis2=2))
    np.testing.assert_allclose(cost, np.mean(signs.optima().J))


def test_as_in_the_paper_the_truth_stays_and_excess_stops_growing():
    """Of 60 runs 57 keep it with a probability of 0.95 each; of equal weights and fixed delta, 49 did."""
    paper, signs = learner()
    for truth in range(2):
        keys = jax.random.split(jax.random.key(truth), NUM_RUNS)
        traces = run_many(paper, signs[truth], horizon=HORIZON, keys=keys, num_points=20, truth=truth)
        assert np.mean([bool(trace.is_truth_inside) for trace in traces]) >= 0.95
        assert not any(event.name == "halt" for trace in traces for event in trace.events)
        middle, last = np.mean([trace.excess[[9, -2]] for trace in traces], axis=0)
        assert np.log(last / middle) / np.log(2) < 0.6
