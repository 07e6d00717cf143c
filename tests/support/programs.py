"""Programs that many tests run: compiled once for each shape, with policies and plants as arguments."""

import equinox as eqx
import jax
import jax.numpy as jnp


def drive(policy, y, *, u_last=None, dtype=jnp.float64):
    """Last memory, and inputs for given observations, with the inputs applied as chosen unless given."""
    given = jnp.full((len(y), policy.num_inputs), jnp.nan, dtype) if u_last is None else u_last
    return _drive(policy, jnp.asarray(y, dtype), given)


@eqx.filter_jit
def _drive(policy, y, given):
    def step(carry, now):
        memory, last = carry
        observed, applied = now
        memory, u = policy.step(memory, observed, jnp.where(jnp.isnan(applied), last, applied))
        return (memory, u), u

    start = (policy.init(jax.random.key(1)), jnp.zeros(policy.num_inputs, y.dtype))
    (memory, _), u = jax.lax.scan(step, start, (y, given))
    return memory, u
