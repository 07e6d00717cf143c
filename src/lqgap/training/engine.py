"""The loop of both oracles: a policy descends, an adversary's weights ascend, the best so far is kept.

    policy:     Adam on  sum_i q_i gap_i(policy)
    adversary:  q_i <- q_i exp(rate (2 g_i - g_i before)) ,   g = gap / max gap      (robust; optimistic)
                q fixed                                                             (randomised)

A bank of the members themselves need not be taught what to answer to q (`training.answer`): at first its
prior follows the adversary, whose steps shrink, and no derivative is taken. The result is then the average of
most of these priors: the luckiest of them at validations would not be the best.

At regular steps the latest policy and the average of recent ones are validated on noise that stays the same,
by the largest gap (robust) or the mean one (randomised); the best one seen, the start included, is the
result, so that training on never makes it worse. Where validations bring no improvement, training begins
again from the best policy with smaller steps; at once where an update meets gaps that are not finite, or many
times the best score. Such updates are counted.
"""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from lqgap.policies import AbstractPolicy
from lqgap.progress import is_spent
from lqgap.training.answer import climb, set_prior
from lqgap.training.derivative import pathwise, smoothed
from lqgap.training.objective import AbstractObjective, count_members
from lqgap.training.options import TrainingOptions

MEMORY = 0.95  # of the averages of gradients' sizes and of policies
RECENT = 3.0  # of n priors that answer the adversary, the k-th has a share like k^2 in the average
LUCK = 0.05  # relative: by so much the largest gap of a few rollouts may mislead
WEIGHT_MEMORY = 0.995  # of the average of the adversary's weights, which go round the saddle point
STALE = 2  # validations without improvement after which it begins again from the best policy
FAR_WORSE = 1.5  # times the best score: then at once
BLOWN_UP = 10.0  # times the best score, on the few rollouts of one update: likewise
SMALLER = 0.3  # times the steps before, from then on
BY_THEN = 0.7  # of a budget of time updates end: what was found must still be judged
SPIKE = 3.0  # a gradient larger than this many times the usual is shortened

DrawFn = Callable[[int, int], AbstractObjective]
Stage = Literal[
    "answer", "descend", "polish"
]  # by the prior alone, by pathwise derivatives, by smoothed ones


class TrainingState(eqx.Module):
    """What one update hands to the next."""

    parameters: Any
    average: Any
    optimizer: Any
    log_weights: Float[Array, " member"]
    weights_sum: Float[Array, " member"]
    last_gaps: Float[Array, " member"]
    gradient_size: Float[Array, ""]
    step_scale: Float[Array, ""]  # of all steps: smaller after each failure
    step: Int[Array, ""]
    skipped: Int[Array, ""]
    best: Any
    best_score: Float[Array, ""]
    best_weights: Float[Array, " member"]
    num_stale: Int[Array, ""]  # validations since the last improvement


class Trainer(eqx.Module):
    """Everything that does not change during training."""

    objective: AbstractObjective
    frozen: Any
    sizes: Any
    tilt: Float[Array, " member"]  # of a prior that answers the adversary
    key_noise: Array
    key_validation: Array
    options: TrainingOptions = eqx.field(static=True)
    is_robust: Bool[Array, ""]  # no part of the program: both oracles share what is compiled
    num_steps: int = eqx.field(static=True)  # most updates
    stage: Stage = eqx.field(static=True)

    def policy(self, parameters: Any) -> AbstractPolicy:
        """The policy with these parameters."""
        return eqx.combine(parameters, self.frozen)

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """Adam with a rate that falls to a tenth."""
        rate = optax.cosine_decay_schedule(self.options.learning_rate, self.num_steps, alpha=0.1)
        return optax.adam(rate)

    @eqx.filter_jit
    def start(self, parameters: Any, weights: Float[Array, " member"]) -> TrainingState:
        """The state before the first update."""
        zeros = jnp.zeros_like(weights)
        return TrainingState(
            parameters=parameters,
            average=parameters,
            optimizer=self.optimizer.init(parameters),
            log_weights=jnp.log(weights),
            weights_sum=zeros,
            last_gaps=zeros,
            gradient_size=jnp.zeros_like(weights[0]),
            step_scale=jnp.ones_like(weights[0]),
            step=jnp.asarray(0),
            skipped=jnp.asarray(0),
            best=parameters,
            best_score=jnp.full_like(weights[0], jnp.inf),
            best_weights=weights,
            num_stale=jnp.asarray(0),
        )

    @eqx.filter_jit
    def train_some(
        self, state: TrainingState, num_updates: int, drawn: AbstractObjective | None = None
    ) -> tuple[TrainingState, Array]:
        """Several updates at once, and the gaps seen on the way.

        Args:
            drawn: the members of each update, in place of those of the class (randomised).
        """

        def update(state: TrainingState, own: AbstractObjective | None) -> tuple[TrainingState, Array]:
            return self._update(state, own)

        return jax.lax.scan(update, state, drawn, length=num_updates)

    @eqx.filter_jit
    def validate(self, state: TrainingState, weights: Array) -> tuple[TrainingState, Array]:
        """Evaluate the latest policy and the average of recent ones; keep the better one if it is best.

        Of priors that answer the adversary only the average is, and a later one need not be better than an
        earlier one, which was lucky on this noise, but only not clearly worse.
        """
        options, is_answer = self.options, self.stage == "answer"

        def judge(parameters: Any) -> Array:
            return self.objective.gaps(
                self.policy(parameters), self.key_validation, options.validation_rollouts_for(len(weights))
            )

        candidates = [state.average] if is_answer else [state.parameters, state.average]
        stacked = jax.tree.map(lambda *each: jnp.stack(each), *candidates)
        gaps = jax.lax.map(judge, stacked)  # not side by side: half as much to compile
        gaps = jnp.where(jnp.isfinite(gaps), gaps, jnp.inf)
        scores = jnp.where(self.is_robust, jnp.max(gaps, axis=1), gaps @ weights)
        better = jnp.argmin(scores)
        candidate = jax.tree.map(lambda each: each[better], stacked)
        is_best = scores[better] < state.best_score * (1 + LUCK if is_answer else 1)
        is_progress = scores[better] < state.best_score * (1 - options.tolerance)
        num_stale = jnp.where(is_progress, 0, state.num_stale + 1)
        state = eqx.tree_at(
            lambda s: (s.best, s.best_score, s.best_weights, s.num_stale),
            state,
            (
                jax.tree.map(lambda new, old: jnp.where(is_best, new, old), candidate, state.best),
                jnp.minimum(scores[better], state.best_score),
                jnp.where(is_best, _usual_weights(state), state.best_weights),
                num_stale,
            ),
        )
        is_far_worse = scores[better] > FAR_WORSE * state.best_score
        goes_back = is_far_worse | ((num_stale > 0) & (num_stale % STALE == 0) & (not is_answer))
        return _return_to_best(state, goes_back), gaps[better]

    def run(
        self,
        state: TrainingState,
        weights: Float[Array, " member"],
        *,
        on_validation: Callable[[TrainingState, np.ndarray], None],
        draw: DrawFn | None = None,
    ) -> TrainingState:
        """Train until nothing improves or the steps are used up.

        Args:
            draw: makes the members of so many updates from a step on, if they are not those of the class.
        """
        options = self.options
        if int(state.step) == 0:
            state, gaps = self.validate(state, weights)
            on_validation(state, np.asarray(gaps))
        while (
            int(state.step) < self.num_steps
            and int(state.num_stale) < options.patience
            and not is_spent(BY_THEN)
        ):
            count = min(options.validate_every, self.num_steps - int(state.step))
            state, _ = self.train_some(state, count, draw and draw(int(state.step), count))
            state, gaps = self.validate(state, weights)
            on_validation(state, np.asarray(gaps))
        return state

    def _update(self, state: TrainingState, drawn: AbstractObjective | None) -> tuple[TrainingState, Array]:
        mixture = jax.nn.softmax(state.log_weights)
        weights = mixture if drawn is None else jnp.full(count_members(drawn), 1 / count_members(drawn))
        key = jax.random.fold_in(self.key_noise, state.step)
        if self.stage == "answer":
            gaps, moved = self._answer(state, key)
        else:
            gaps, moved = self._descend(state, drawn or self.objective, weights.astype(mixture.dtype), key)
        score = jnp.where(self.is_robust, jnp.max(gaps), weights @ gaps)
        is_sound = jnp.isfinite(moved.gradient_size) & (score <= BLOWN_UP * state.best_score)
        share = self._share_of_latest(state.step)
        average = jax.tree.map(
            lambda a, p: a + share.astype(p.dtype) * (p - a), state.average, moved.parameters
        )
        if drawn is None:
            moved = self._provoke(moved, gaps)
        moved = eqx.tree_at(
            lambda s: (s.average, s.weights_sum, s.step),
            moved,
            (average, WEIGHT_MEMORY * state.weights_sum + mixture, state.step + 1),
        )
        back = eqx.tree_at(lambda s: (s.step, s.skipped), state, (state.step + 1, state.skipped + 1))
        back = _return_to_best(back, ~is_sound)
        state = jax.tree.map(lambda new, old: jnp.where(is_sound, new, old), moved, back)
        return state, jnp.where(is_sound, gaps, jnp.inf)

    def _share_of_latest(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """Of the latest policy in the average: priors that answer are averaged over most of the updates."""
        return jnp.where(self.stage == "answer", RECENT / (RECENT + step), 1 - MEMORY)

    def _answer(self, state: TrainingState, key: Array) -> tuple[Array, TrainingState]:
        """The prior of a bank follows the adversary."""
        parameters = set_prior(state.parameters, state.log_weights + self.tilt)
        count = self.options.rollouts_for(len(state.log_weights))
        gaps = self.objective.gaps(self.policy(parameters), key, count)
        return gaps, eqx.tree_at(lambda s: s.parameters, state, parameters)

    def _descend(
        self, state: TrainingState, objective: AbstractObjective, weights: Array, key: Array
    ) -> tuple[Array, TrainingState]:
        """The policy follows its derivative."""
        gaps, slope = self._differentiate(state, objective, weights, key)
        gradient = jax.tree.map(jnp.multiply, slope, self.sizes)  # no longer in units of what is trained
        size = optax.tree.norm(gradient)
        usual = jnp.where(state.gradient_size == 0, size, state.gradient_size)
        shortened = jnp.minimum(1.0, SPIKE * usual / jnp.maximum(size, 1e-30))
        gradient = jax.tree.map(lambda g: shortened * g, gradient)
        updates, optimizer = self.optimizer.update(gradient, state.optimizer)
        parameters = jax.tree.map(
            lambda p, u, s: p + s * state.step_scale * u, state.parameters, updates, self.sizes
        )
        usual = MEMORY * usual + (1 - MEMORY) * jnp.minimum(size, SPIKE * usual)
        return gaps, eqx.tree_at(
            lambda s: (s.parameters, s.optimizer, s.gradient_size),
            state,
            (parameters, optimizer, jnp.where(jnp.isfinite(size), usual, jnp.nan)),
        )

    def _provoke(self, state: TrainingState, gaps: Float[Array, " member"]) -> TrainingState:
        """The adversary moves weight to members with large gaps."""
        relative = gaps / jnp.maximum(jnp.max(gaps), 1e-30)
        if self.stage == "answer":
            log_weights = climb(state.log_weights, gaps, state.step)
        else:
            ahead = jnp.where(state.step == 0, relative, 2 * relative - state.last_gaps)
            rate = jnp.where(self.is_robust, self.options.adversary_rate, 0.0)
            log_weights = state.log_weights + rate * ahead
            log_weights = log_weights - jax.nn.logsumexp(log_weights)
        return eqx.tree_at(lambda s: (s.log_weights, s.last_gaps), state, (log_weights, relative))

    def _differentiate(
        self, state: TrainingState, objective: Any, weights: Float[Array, " member"], key: Array
    ) -> tuple[Float[Array, " member"], Any]:
        count = self.options.rollouts_for(len(weights))
        given = (state.parameters, self.frozen, weights, key)
        if self.stage == "polish":
            spread = jax.tree.map(lambda size: self.options.smoothing * state.step_scale * size, self.sizes)
            return smoothed(objective, *given, num_rollouts=2 * count, spread=spread)
        return pathwise(objective.with_step_scale(state.step_scale), *given, num_rollouts=count)


def make_trainer(
    policy: AbstractPolicy,
    objective: AbstractObjective,
    key: Array,
    *,
    options: TrainingOptions,
    is_robust: bool,
    stage: Stage = "descend",
    like: AbstractPolicy | None = None,
    tilt: Array | None = None,
) -> tuple[Trainer, Any]:
    """The trainer, and the parameters it starts from.

    Args:
        like: the policy whose arrays say how large steps are, if not this one.
        tilt: of a prior that answers the adversary.
    """
    parameters, frozen = eqx.partition(policy, policy.trainable())
    key_noise, key_validation = jax.random.split(key)
    # Steps are relative to the size of an array at the start; what starts at zero counts as of size one.
    sizes = _sizes(parameters if like is None else eqx.filter(like, like.trainable()))
    trainer = Trainer(
        objective=objective,
        frozen=frozen,
        sizes=sizes,
        tilt=jnp.zeros(0) if tilt is None else tilt,
        key_noise=key_noise,
        key_validation=key_validation,
        options=options,
        is_robust=jnp.asarray(is_robust),
        num_steps=options.updates_of(stage, policy),
        stage=stage,
    )
    return trainer, parameters


def _return_to_best(state: TrainingState, goes_back: Bool[Array, ""]) -> TrainingState:
    """Begin again from the best policy and the usual weights, with smaller steps and no momentum."""
    best = lambda now: jax.tree.map(lambda b, p: jnp.where(goes_back, b, p), state.best, now)  # noqa: E731
    return eqx.tree_at(
        lambda s: (
            s.parameters,
            s.average,
            s.optimizer,
            s.gradient_size,
            s.log_weights,
            s.step_scale,
        ),
        state,
        (
            best(state.parameters),
            best(state.average),
            jax.tree.map(lambda now: jnp.where(goes_back, 0, now), state.optimizer),
            jnp.where(goes_back, 0, state.gradient_size),
            jnp.where(goes_back, jnp.log(_usual_weights(state)), state.log_weights),
            jnp.where(goes_back, SMALLER * state.step_scale, state.step_scale),
        ),
    )


def _usual_weights(state: TrainingState) -> Float[Array, " member"]:
    """The adversary's on average; those given as long as no update was sound."""
    total = jnp.sum(state.weights_sum)
    return jnp.where(total > 0, state.weights_sum / jnp.where(total > 0, total, 1), state.best_weights)


@eqx.filter_jit
def _sizes(parameters: Any) -> Any:
    return jax.tree.map(_size, parameters)


def _size(array: Array) -> Array:
    """The root mean square; of a stack of matrices, of every entry over the stack: entries have units."""
    overall = jnp.sqrt(jnp.mean(array**2))
    own = jnp.sqrt(jnp.mean(array**2, axis=tuple(range(array.ndim - 2)), keepdims=True))
    size = own if array.ndim > 2 else overall
    return jnp.where(size > 0, size, jnp.where(overall > 0, overall, 1.0)).astype(array.dtype)
