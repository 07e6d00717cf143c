import jax
import jax.numpy as jnp
import numpy as np

from lqgap.adaptive.trace import StepRecord, TraceBuilder
from lqgap.adaptive.vtr.state import RUNNING, VTRChoice, VTRInfo


def block(length, *, switch_at=(), clip_at=None):
    """A block of one run with three members and one parameter."""
    choice = VTRChoice(
        members=jnp.ones(3, dtype=bool),
        estimate=jnp.asarray(0),
        optimistic=jnp.asarray(1),
        theta_estimate=jnp.zeros(1),
        score=jnp.asarray(1.5),
    )
    info = VTRInfo(
        is_switch=jnp.asarray(False),
        status=jnp.asarray(RUNNING),
        choice=choice,
        theta=jnp.asarray([0.5]),
        J=jnp.asarray(2.0),
        clip_error=jnp.asarray(0.0),
        clip_bound=jnp.asarray(1.0),
        misfit=jnp.asarray(0.0),
        is_lost=jnp.asarray(False),
    )
    zero = jnp.asarray(0.0)
    one = StepRecord(info, zero, zero, zero, jnp.asarray(True))
    steps = jax.tree.map(lambda leaf: np.tile(np.asarray(leaf), (1, length) + (1,) * leaf.ndim), one)
    steps.info.is_switch[0, list(switch_at)] = True
    if clip_at is not None:
        steps.info.clip_error[0, clip_at] = 0.7
    return steps


def test_blocks_are_thinned_and_no_clip_error_is_lost():
    account = TraceBuilder((), last=19, every=8, count=1, is_known=True)
    account.add(0, block(10, switch_at=[3], clip_at=9), 0.1)  # after the last point of its block
    account.add(10, block(16, switch_at=[2, 12]), 0.2)  # the second switch is after the last step
    trace = account.traces()[0]
    assert list(trace.steps) == [0, 8, 16, 19]
    assert list(trace.clip_error) == [0.0, 0.0, 0.7, 0.0]
    assert [switch.step for switch in trace.switches] == [3, 12]
    assert trace.switches[0].theta == (0.5,)
    assert list(trace.seconds) == [0.1, 0.2]
    assert trace.is_truth_inside


def test_nothing_is_said_of_a_truth_that_is_not_known():
    account = TraceBuilder((), last=9, every=1, count=1, is_known=False)
    account.add(0, block(10, switch_at=[3]), 0.1)
    (trace,) = account.traces()
    assert trace.is_truth_inside is None
    assert trace.switches[0].is_truth_inside is None
