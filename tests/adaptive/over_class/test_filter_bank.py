import jax
import numpy as np
import pytest
from naive_rivals import STEPS, naive_run, springs
from naive_vtr import random_noise, stream

import lqgap as lg
from lqgap.adaptive import FilterBank


def likeliest(scores, _, __, ___):
    return int(np.argmax(scores))


def hysteresis(*, margin, dwell, refuted_at):
    """As it is written, with the step of the last switch kept in between."""
    last = [0]

    def choose(scores, t, acts_on, _):
        lead = scores.max() - scores[acts_on]
        if t == 1 or (lead >= margin and t - last[0] >= dwell) or lead >= refuted_at:
            best = int(np.argmax(scores))
            if t == 1 or best != acts_on:
                last[0], acts_on = t, best
        return acts_on

    return choose


CASES = {
    "mixture": ({}, lambda: likeliest),
    "likeliest": ({}, lambda: likeliest),
    "hysteresis": ({"delta": None}, lambda: hysteresis(margin=1.0, dwell=5, refuted_at=np.inf)),
    "hysteresis, overridden": (
        {"margin": 0.3, "dwell": 12, "delta": 0.5},
        lambda: hysteresis(margin=0.3, dwell=12, refuted_at=np.log(9 / 0.5)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_inputs_are_those_of_the_rule_as_it_is_written(case):
    how, rule = CASES[case]
    name = case.partition(",")[0]
    learner, key = FilterBank(lg.stack(springs()), name, **how), jax.random.key(0)
    noise = random_noise(3, springs()[4], steps=STEPS)
    u, _, told = stream(learner, springs()[4], noise, key)
    expected, chosen = naive_run(
        springs(), springs()[4], rule(), tuple(map(np.asarray, noise)), key, mixes=name == "mixture"
    )
    np.testing.assert_allclose(u[:STEPS], expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_array_equal(told.acts_on[:STEPS, 0], chosen)
    assert told.num_changes[STEPS - 1] == np.sum(np.diff(chosen) != 0) > 0


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    for how, message in (
        ({"rule": "best"}, "rule is 'best'"),
        ({"margin": 0.0}, "margin is 0"),
        ({"dwell": -1}, "dwell is -1"),
        ({"delta": 2.0}, "delta is 2"),
    ):
        with pytest.raises(lg.InvalidArgumentError, match=message):
            FilterBank(lg.stack(springs()), **how)
