"""Markov parameters: what a plant is, whatever coordinates its state is written in.

of the plant:       C A^k B                      (y is what past inputs made of it)
of its predictor:   C Abar^k B  and  C Abar^k F   (yhat is what past inputs and outputs tell)
"""

from functools import partial

import jax
from jaxtyping import Array, Float

from lqgap.arguments import IntLike, read_count
from lqgap.systems.lqg import LQG
from lqgap.systems.optimum import Optimum, predictor_matrix


def markov_parameters(plant: LQG, *, length: IntLike) -> Float[Array, "time output input"]:
    """C A^k B for k = 0..length-1: the impulse response from u_{t-1-k} to y_t."""
    return _impulse_response(plant.C, plant.A, plant.B, read_count("length", length, least=1))


def predictor_markov_parameters(
    optimum: Optimum, plant: LQG, *, length: IntLike
) -> tuple[Float[Array, "time output input"], Float[Array, "time output output"]]:
    """C Abar^k B and C Abar^k F for k = 0..length-1: from u_{t-1-k} and y_{t-1-k} to yhat_{t|t-1}."""
    length = read_count("length", length, least=1)
    Abar = predictor_matrix(optimum, plant)
    return (
        _impulse_response(plant.C, Abar, plant.B, length),
        _impulse_response(plant.C, Abar, optimum.F, length),
    )


@partial(jax.jit, static_argnames="length")
def _impulse_response(C: Array, A: Array, B: Array, length: int) -> Array:
    def step(state: Array, _: None) -> tuple[Array, Array]:
        return A @ state, C @ state

    return jax.lax.scan(step, B, length=length)[1]
