"""Programs that many tests run: compiled once for each shape, with policies and plants as arguments."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


def drive(policy, y, *, u_last=None, dtype=jnp.float64):
    """Last memory, and inputs for given observations, with the inputs applied as chosen unless given."""
    given = jnp.full((len(y), policy.num_inputs), jnp.nan, dtype) if u_last is None else u_last
    return _drive(policy, jnp.asarray(y, dtype), given)


def replay(policy, y, u, *, seed=0):
    """Last memory, and the inputs that the policy would choose along a record of what was applied."""
    u_last = np.concatenate([np.zeros((1, u.shape[1])), u[:-1]])
    return _replay(policy, jnp.asarray(y), jnp.asarray(u_last), jax.random.key(seed))


@eqx.filter_jit
def _replay(policy, y, u_last, key):
    return jax.lax.scan(lambda memory, now: policy.step(memory, *now), policy.init(key), (y, u_last))


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
