import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from naive_rivals import STEPS, naive_run, posterior, springs
from naive_vtr import random_noise, stream

import lqgap as lg
from lqgap.adaptive import ThompsonSampling


def drawn(scores, _, __, key):
    return int(jax.random.categorical(key, scores))


def lazily():
    """As it is written, with the weights of the last draw and the lengths of episodes kept in between."""
    kept = {"weights": None, "since": 0, "before": 0}

    def choose(scores, t, acts_on, key):
        now = posterior(scores)
        length = t - kept["since"]
        if t == 1 or 0.5 * np.abs(now - kept["weights"]).sum() >= 0.5 or length > kept["before"]:
            kept.update(weights=now, before=0 if t == 1 else length, since=t)
            return drawn(scores, t, acts_on, key)
        return acts_on

    return choose


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("lost", [(), (0, 7, 8, 40)], ids=["whole", "lossy"])
def test_inputs_are_those_of_the_rule_as_it_is_written(lazy, lost):
    learner, key = ThompsonSampling(lg.stack(springs()), lazy=lazy), jax.random.key(0)
    w, v = random_noise(3, springs()[4], steps=STEPS)
    v = v.at[np.array(lost, dtype=int)].set(np.nan)
    u, _, told = stream(learner, springs()[4], (w, v), key)
    rule = lazily() if lazy else drawn
    expected, chosen = naive_run(
        springs(), springs()[4], rule, (np.asarray(w), np.asarray(v)), key, lost=lost
    )
    np.testing.assert_allclose(u[:STEPS], expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_array_equal(told.acts_on[:STEPS, 0], chosen)
    assert np.sum(np.diff(chosen) != 0) > 3


def test_lazy_episodes_are_at_most_one_step_longer_than_the_one_before():
    """Two members that no data tell apart: the weights never move, and lengths are 1, 2, 3, .."""
    learner = ThompsonSampling(lg.stack([springs()[0], springs()[0]]), lazy=True)
    memory, lengths = learner.init(jax.random.key(0)), []
    step = jax.jit(lambda memory, y: learner.step(memory, y, jnp.zeros(1))[0])
    for y in np.random.default_rng(0).normal(size=(60, 1)):
        memory = step(memory, y)
        lengths.append(int(memory.rule.length))
    ends = [n for n, after in itertools.pairwise(lengths) if after == 1]
    assert ends == list(range(1, len(ends) + 1))
    assert memory.num_changes == 0  # a draw among members that are the same plant is no switch


@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_no_truth_value_is_refused():
    with pytest.raises(lg.InvalidArgumentError, match="lazy is 'no', expected True or False"):
        ThompsonSampling(lg.stack(springs()[:2]), lazy="no")
