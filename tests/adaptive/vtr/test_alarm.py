import jax.numpy as jnp
import numpy as np

from lqgap.adaptive.vtr.alarm import FALSE_ALARM, FIRST_WAIT, MISFIT, RUNNING, Alarm

LOUD, SILENT = 0.1 - np.log(FALSE_ALARM), 0.0


def listen(rings, steps):
    """The status at every step, of an alarm that rings at the given ones."""
    alarm, heard = Alarm.quiet(), []
    for time in range(steps):
        alarm, _ = alarm.hear(jnp.asarray(LOUD if time in rings else SILENT), jnp.asarray(time))
        heard.append(int(alarm.status))
    return np.asarray(heard)


def test_control_returns_after_a_wait_without_a_ring():
    status = listen({5}, 2 * FIRST_WAIT)
    np.testing.assert_array_equal(
        status == MISFIT, (np.arange(len(status)) >= 5) & (np.arange(len(status)) < 5 + FIRST_WAIT)
    )
    assert status[-1] == RUNNING


def test_a_ring_during_a_wait_begins_it_anew():
    status = listen({5, 20}, 3 * FIRST_WAIT)
    np.testing.assert_array_equal(np.flatnonzero(status == MISFIT), np.arange(5, 20 + FIRST_WAIT))


def test_every_alarm_doubles_the_wait():
    """With delta below one half the waits of false alarms have a bounded sum in expectation."""
    second = 2 * FIRST_WAIT
    status = listen({0, second}, 5 * FIRST_WAIT)
    alarmed = np.flatnonzero(status[second:] == MISFIT)
    np.testing.assert_array_equal(alarmed, np.arange(2 * FIRST_WAIT))
