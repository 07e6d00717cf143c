"""One linear controller that stabilises every member of a class.

Candidates are the members' own optimal controllers. If none stabilises all, the best is improved by gradient.
First the class is made easy by a discount, so that all closed loops times `discount` are stable; lowering the
worst energy of their impulse responses makes room to raise the discount, until it reaches one (for one plant:
Perdomo, Umenberger, Simchowitz, Stabilizing dynamical systems via policy gradient methods, 2021). Then the
worst average cost is lowered. The result is checked by eigenvalues on all members. All of it happens in
natural coordinates of plants and controllers, with outputs in standard deviations of the innovation and
inputs in units of M^-1/2, so that no units decide.

Some classes have no such controller: a stable loop has det(I - AA) > 0, and two members with an eigenvalue at
one and steady gains of opposite sign give it opposite signs, whatever the controller (`phase_pair`).
"""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array

from lqgap.batches import batch_of_one, take
from lqgap.errors import NotConvergedError
from lqgap.evaluation.exact import close_loop, closed_loop_radius, exact_average_cost
from lqgap.linalg.lyapunov import lyapunov_sum
from lqgap.policies import LinearDynamic, StationaryLQG
from lqgap.simulators import Finite
from lqgap.simulators.finite import Members
from lqgap.systems import LQG, Optimum
from lqgap.systems.natural import naturalize
from lqgap.systems.optimum import solve_members

MAX_ROUNDS = 20
MAX_ITERATIONS = 100  # of each round
SHARPNESS = 4.0  # of the soft maximum over members
STABLE = 1 - 1e-6  # what spectral radii must stay below


def find_stabilizer(members: Members) -> LinearDynamic:
    """A controller whose closed loop with every member is stable; raises if none is found."""
    members = Finite.of(members)
    optima = members.optima()  # raises, with its name, if a member cannot be stabilised at all
    inputs = np.asarray(jnp.mean(jax.vmap(jnp.diagonal)(optima.M), axis=0)) ** -0.5
    outputs = np.asarray(jnp.mean(jax.vmap(jnp.diagonal)(optima.S), axis=0)) ** 0.5
    systems = naturalize(_in_units(members.systems, inputs, outputs))
    controller, worst = _best_candidate(systems)
    room = 1e-3  # discounted loops are stable by so much
    for _ in range(MAX_ROUNDS):
        if worst < STABLE or room < 1e-5:
            break
        discount = jnp.asarray((1 - room) / worst)
        candidate = _minimise(lambda c, d=discount: _energy(c, systems, d), controller)
        if (radius := _radius(candidate, systems)) < worst - 1e-7:
            controller, worst = candidate, radius
        else:
            room /= 3
    if worst >= STABLE:
        raise NotConvergedError(
            f"no linear controller was found that stabilises all {len(members)} members: the best leaves a "
            f"spectral radius of {worst:.6g}; take narrower ranges, or a policy that adapts (ModelBank; in a "
            f"study: bank)"
        )
    polished = _minimise(lambda c: _relative_cost(c, systems, optima.J), controller)
    best = polished if _radius(polished, systems) < STABLE else controller
    u, per_y = np.diag(inputs), np.diag(1 / outputs)
    return LinearDynamic(best.Ac, best.Bc @ per_y, u @ best.Cc, u @ best.Dc @ per_y)


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, None, None))
def _in_units(plant: LQG, inputs: Array, outputs: Array) -> LQG:
    """The plant with u and y divided by these units; the cost is the same."""
    u, y = jnp.diag(inputs), jnp.diag(outputs)
    per_y = jnp.diag(1 / outputs)
    Q, R, V = y @ plant.Q @ y, u @ plant.R @ u, per_y @ plant.V @ per_y
    changed = {"B": plant.B @ u, "C": per_y @ plant.C, "Q": Q, "R": R, "V": V}
    if plant.N is not None:
        changed["N"] = plant.N @ u
    return LQG(**(plant.matrices() | changed))


def _best_candidate(systems: LQG) -> tuple[LinearDynamic, float]:
    candidates = _candidates(systems, solve_members(systems))
    radii = np.asarray(_radii(candidates, systems)).max(axis=1)
    best = int(np.argmin(radii))
    return take(candidates, best), float(radii[best])


@jax.jit
def _candidates(systems: LQG, optima: Optimum) -> LinearDynamic:
    def of_member(plant: LQG, optimum: Optimum) -> LinearDynamic:
        step = StationaryLQG(plant, filters="steady", optimum=optimum).at(0)
        return LinearDynamic(step.Ac, step.Bc, step.Cc, step.Dc)

    return jax.vmap(of_member)(systems, optima)


@jax.jit
def _radii(candidates: LinearDynamic, systems: LQG) -> Array:
    """The spectral radius of every candidate on every member."""
    return jax.vmap(lambda c: jax.vmap(lambda plant: closed_loop_radius(c, plant))(systems))(candidates)


def _radius(controller: LinearDynamic, systems: LQG) -> float:
    return float(np.max(_radii(batch_of_one(controller), systems)))


def _minimise(
    objective_fn: Callable[[LinearDynamic], tuple[Array, LinearDynamic]], start: LinearDynamic
) -> LinearDynamic:
    flat, unravel = jax.flatten_util.ravel_pytree(start)

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective_fn(unravel(jnp.asarray(vector)))
        slope = np.asarray(jax.flatten_util.ravel_pytree(gradient)[0])
        # Beyond the stable controllers there is a wall; the line search steps back from it.
        is_finite = np.isfinite(value) and np.all(np.isfinite(slope))
        return (float(value), slope) if is_finite else (1e8, np.zeros_like(vector))

    found = scipy.optimize.minimize(
        objective, np.asarray(flat), jac=True, method="BFGS", options={"maxiter": MAX_ITERATIONS}
    )
    return unravel(jnp.asarray(found.x))


@eqx.filter_jit
@eqx.filter_value_and_grad
def _energy(controller: LinearDynamic, systems: LQG, discount: Array) -> Array:
    """A soft maximum over members of the log energy of the discounted loop's impulse response."""

    def of_member(plant: LQG) -> Array:
        loop = discount * close_loop(controller.at(0), plant).transition
        return jnp.log(jnp.trace(lyapunov_sum(loop, jnp.eye(len(loop)))))

    return _soft_maximum(jax.vmap(of_member)(systems))


@eqx.filter_jit
@eqx.filter_value_and_grad
def _relative_cost(controller: LinearDynamic, systems: LQG, optimal: Array) -> Array:
    """A soft maximum over members of the log average cost, relative to the optimum."""
    costs = jax.vmap(lambda plant: exact_average_cost(controller, plant))(systems)
    return _soft_maximum(jnp.log(costs / optimal))


def _soft_maximum(values: Array) -> Array:
    return jax.nn.logsumexp(SHARPNESS * values) / SHARPNESS
