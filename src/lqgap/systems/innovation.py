"""What an innovation tells when some of its components are lost.

With e ~ N(0, S) and s the components seen, the lost ones are filled by their conditional mean,

    e_lost = S_{lost,s} S_{s,s}^-1 e_s ,      log p = -1/2 [ e_s' S_{s,s}^-1 e_s + log det 2 pi S_{s,s} ] ,

so that a filter may go on with its gain: L e is then exactly the correction by the components seen.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.linalg.psd import log_det_psd, solve_psd, solve_unrolled

MAX_UNROLLED = 4  # outputs: compiling more takes longer than it saves


def fill_lost(
    innovation: Float[Array, " output"], S: Float[Array, "output output"]
) -> tuple[Float[Array, " output"], Float[Array, ""]]:
    """The innovation with its lost components (NaN) filled, and the log-density of those seen."""
    seen = ~jnp.isnan(innovation)
    known = jnp.where(seen, innovation, 0)
    masked = jnp.where(seen[:, None] & seen[None, :], S, jnp.eye(len(S), dtype=S.dtype))
    solve = solve_unrolled if len(S) <= MAX_UNROLLED else _solve
    precision_times, log_density = solve(masked, known)
    log_density = log_density - 0.5 * jnp.sum(seen).astype(S.dtype) * math.log(2 * math.pi)
    return jnp.where(seen, innovation, S @ precision_times), log_density


def _solve(S: Array, e: Array) -> tuple[Array, Array]:
    """The same by Cholesky."""
    solution = solve_psd(S, e)
    return solution, -0.5 * (e @ solution + log_det_psd(S))
