import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from random_systems import random_plant

import lqgap as lg
from lqgap.policies import ModelBank, StationaryLQG
from lqgap.training.engine import make_trainer
from lqgap.training.objective import AbstractObjective, ExactObjective
from lqgap.training.options import TrainingOptions

PLANTS = [random_plant(0), random_plant(1)]
OPTIONS = TrainingOptions(steps=40, validate_every=10, validation_rollouts=2, patience=99)


def make(objective, *, is_robust=True, policy=None):
    policy = policy or StationaryLQG(PLANTS[0])
    trainer, parameters = make_trainer(
        policy, objective, jax.random.key(0), options=OPTIONS, is_robust=is_robust
    )
    return trainer, trainer.start(parameters, jnp.asarray([0.5, 0.5]))


def test_training_lowers_the_worst_gap_and_never_ends_worse_than_it_was():
    objective = ExactObjective(lg.stack(PLANTS), 12)
    trainer, state = make(objective)
    seen = []
    state = trainer.run(state, jnp.asarray([0.5, 0.5]), on_validation=lambda s, g: seen.append((s, g.max())))
    scores = [float(s.best_score) for s, _ in seen]
    assert scores == sorted(scores, reverse=True)
    before = max(float(lg.exact_gap(StationaryLQG(PLANTS[0]), plant, horizon=12)) for plant in PLANTS)
    after = max(float(lg.exact_gap(trainer.policy(state.best), plant, horizon=12)) for plant in PLANTS)
    np.testing.assert_allclose(after, state.best_score, rtol=1e-9)
    assert after < 0.9 * before


def test_weight_moves_to_the_member_with_the_larger_gap_only_against_an_adversary():
    objective = ExactObjective(lg.stack(PLANTS), 12)
    for is_robust in (True, False):
        trainer, state = make(objective, is_robust=is_robust)
        state, gaps = trainer.train_some(state, 5)
        larger = int(np.argmax(gaps[0]))
        weight = float(jnp.exp(state.log_weights[larger]))
        assert (weight > 0.51) == is_robust


class Broken(AbstractObjective):
    """Not finite once the parameters have moved."""

    def gaps(self, policy, key, num_rollouts):  # noqa: ARG002
        moved = jnp.sum(jnp.abs(policy.K - StationaryLQG(PLANTS[0]).K))
        return jnp.where(moved > 1e-3, jnp.nan, 1.0) * jnp.asarray([1.0, 2.0]) * (1 + jnp.sum(policy.K**2))


def test_updates_that_are_not_finite_are_undone_counted_and_make_steps_smaller():
    trainer, state = make(Broken())
    state, _ = trainer.train_some(state, 12)
    assert int(state.skipped) >= 5
    assert float(state.step_scale) < 0.1
    assert all(
        np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(eqx.filter(state.parameters, eqx.is_array))
    )


class Cliff(AbstractObjective):
    """Better along one entry of the gain, for a little way; then a million times worse."""

    def gaps(self, policy, key, num_rollouts):  # noqa: ARG002
        way = policy.K.ravel()[0] - StationaryLQG(PLANTS[0]).K.ravel()[0]
        gap = jnp.where(jnp.abs(way) < 4e-3, 1 - 100 * way, 1e6)
        return gap * jnp.asarray([1.0, 0.9])


def test_updates_that_blow_up_go_back_to_the_best_with_smaller_steps_until_they_help():
    trainer, state = make(Cliff())
    weights = jnp.asarray([0.5, 0.5])
    state = trainer.run(state, weights, on_validation=lambda *_: None)
    assert int(state.skipped) >= 1
    assert float(state.best_score) < 0.9


class Uneven(AbstractObjective):
    """The second member loses twice as much; both far more at a prior whose first entry is zero."""

    def gaps(self, policy, key, num_rollouts):  # noqa: ARG002
        return jnp.where(policy.log_prior[0] == 0, 100.0, 1.0) * jnp.asarray([1.0, 2.0])


def answering(log_prior, tilt):
    bank = ModelBank(lg.stack(PLANTS), horizon=12)
    bank = eqx.tree_at(lambda b: b.log_prior, bank, jnp.asarray(log_prior))
    trainer, parameters = make_trainer(
        bank,
        Uneven(),
        jax.random.key(0),
        options=OPTIONS,
        is_robust=True,
        stage="answer",
        tilt=jnp.asarray(tilt),
    )
    weights = jnp.asarray([0.5, 0.5])
    state, _ = trainer.validate(trainer.start(parameters, weights), weights)
    return trainer, state


def test_the_prior_that_answers_is_the_average_of_most_of_those_before():
    trainer, state = answering([0.3, -0.3], tilt=[1.0, 0.0])
    priors = []
    for _ in range(6):
        state, _ = trainer.train_some(state, 1)
        priors.append(np.asarray(state.parameters.log_prior))
    shares = [(k + 1) * (k + 2) for k in range(6)]
    np.testing.assert_allclose(
        state.average.log_prior, np.average(priors, axis=0, weights=shares), rtol=1e-12
    )
    state, _ = trainer.validate(state, jnp.asarray([0.5, 0.5]))
    np.testing.assert_allclose(state.best.log_prior, state.average.log_prior)


def test_without_a_sound_update_the_weights_are_those_given():
    trainer, state = answering([0.3, -0.3], tilt=[0.0, 0.0])
    state, _ = trainer.train_some(state, 1)
    assert int(state.skipped) == 1
    state, _ = trainer.validate(state, jnp.asarray([0.5, 0.5]))
    np.testing.assert_allclose(state.best_weights, [0.5, 0.5])
