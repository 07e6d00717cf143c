import jax
import jax.numpy as jnp
import numpy as np

import lqgap as lg
from lqgap.adaptive.learner import Snapshot
from lqgap.adaptive.trace import StepRecord, TraceBuilder
from lqgap.adaptive.vtr.algorithm import LQGVTR
from lqgap.policies import StationaryLQG

PLANT = lg.LQG([[0.5]], [[1.0]], [[1.0]])


def block(length, *, num_changes=0, status=0, is_fault=False, figure=0.0, has_diverged=False):
    """A block of one run with three members and one parameter."""
    told = Snapshot(
        acts_on=jnp.asarray([0.5]),
        plausible=jnp.ones(3, dtype=bool),
        num_changes=jnp.asarray(0),
        status=jnp.asarray(0),
        is_fault=jnp.asarray(False),
        is_warming=jnp.asarray(False),
        figures={"J": jnp.asarray(0.0)},
    )
    zero = jnp.asarray(0.0)
    one = StepRecord(told, zero, zero, zero, jnp.asarray(True), jnp.asarray(False))
    steps = jax.tree.map(lambda leaf: np.tile(np.asarray(leaf), (1, length) + (1,) * leaf.ndim), one)
    steps.told.num_changes[0] = num_changes
    steps.told.status[0] = status
    steps.told.is_fault[0] = is_fault
    steps.told.figures["J"][0] = figure
    steps.has_diverged[0] = has_diverged
    return steps


def builder(**known):
    learner = LQGVTR(lg.stack([PLANT]))
    return TraceBuilder(learner, **({"last": 19, "every": 8, "count": 1, "is_known": True} | known))


def test_blocks_are_thinned_and_every_change_is_a_switch():
    account = builder()
    account.add(0, block(10, num_changes=np.arange(10) >= 3), 0.1)
    later = block(16, num_changes=1 + (np.arange(16) >= 2) + (np.arange(16) >= 12), figure=np.arange(16.0))
    account.add(10, later, 0.2)  # the second switch is after the last step
    trace = account.traces()[0]
    assert list(trace.steps) == [0, 8, 16, 19]
    assert list(trace.figures["J"]) == [0.0, 0.0, 6.0, 9.0]
    assert [switch.step for switch in trace.switches] == [3, 12]
    assert trace.switches[0].theta == (0.5,)
    assert trace.switches[1].figures == {"J": 2.0}
    assert list(trace.num_members) == [3, 3, 3, 3]
    assert trace.num_switches == 2
    assert trace.diverged_at is None
    assert list(trace.seconds) == [0.1, 0.2]
    assert trace.is_truth_inside


def test_alarms_and_their_ends_are_events_and_their_steps_are_counted():
    account = builder()
    account.add(0, block(10, status=2 * (np.arange(10) >= 6)), 0.1)
    account.add(10, block(10, status=2 * (np.arange(10) < 3)), 0.2)
    (trace,) = account.traces()
    assert [(event.step, event.name) for event in trace.events] == [(6, "misfit"), (13, "resumed")]
    assert trace.is_stopped
    assert trace.num_stopped == 7


def test_nothing_is_said_of_a_truth_that_is_not_known():
    account = builder(last=9, every=1, is_known=False)
    account.add(0, block(10, num_changes=np.arange(10) >= 3), 0.1)
    (trace,) = account.traces()
    assert trace.is_truth_inside is None
    assert trace.switches[0].is_truth_inside is None


def test_a_policy_that_is_no_learner_has_no_sets():
    account = TraceBuilder(StationaryLQG(PLANT), last=9, every=1, count=1, is_known=False)
    account.add(0, block(10), 0.1)
    (trace,) = account.traces()
    assert trace.num_members is None


def test_the_first_step_of_a_divergence_is_an_event():
    account = builder()
    account.add(0, block(10, has_diverged=np.arange(10) >= 4), 0.1)
    account.add(10, block(10, has_diverged=True), 0.2)
    (trace,) = account.traces()
    assert trace.diverged_at == 4
    assert [(event.step, event.name) for event in trace.events] == [(4, "diverged")]


def test_nothing_is_counted_after_a_divergence():
    account = builder()
    steps = np.arange(10)
    account.add(0, block(10, num_changes=steps, status=2, is_fault=True, has_diverged=steps >= 4), 0.1)
    account.add(10, block(10, num_changes=20, status=1, is_fault=True, has_diverged=True), 0.2)
    (trace,) = account.traces()
    assert (trace.num_switches, trace.num_stopped, trace.num_faults) == (3, 4, 4)
    assert [switch.step for switch in trace.switches] == [1, 2, 3]
    assert [event.name for event in trace.events] == ["misfit", "fault", "diverged"]


def test_faults_are_counted_and_the_first_is_an_event():
    account = builder()
    account.add(0, block(10, is_fault=np.isin(np.arange(10), [3, 7])), 0.1)
    account.add(10, block(10, is_fault=np.arange(10) == 1), 0.2)
    (trace,) = account.traces()
    assert trace.num_faults == 3
    assert [(event.step, event.name) for event in trace.events] == [(3, "fault")]
    assert not trace.is_stopped


def test_thousands_of_switches_are_counted_and_only_the_first_are_kept():
    account = builder(last=3_999)
    for first in range(0, 4_000, 500):
        account.add(first, block(500, num_changes=first + np.arange(500)), 0.1)
    (trace,) = account.traces()
    assert trace.num_switches == 3_999
    assert 1_000 <= len(trace.switches) < 1_500
