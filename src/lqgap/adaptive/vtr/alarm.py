"""What happens when the observations fit no member: another controller takes over until one fits again.

The test against the class (`evidence`) rings with probability delta = 1e-3 at most while the truth is a
member, over all time. The k-th time that it takes the learner out of control, the other controller is in
charge for FIRST_WAIT 2^(k-1) steps, the test and the likelihoods begin anew, a ring during the wait begins
the wait anew, and the learner takes over again at the end of it. With the truth in the class the steps so
lost are at most

    sum_k delta^k FIRST_WAIT 2^(k-1) / (1 - delta) = FIRST_WAIT delta / ((1 - 2 delta)(1 - delta))

in expectation, less than one whatever the horizon: a false alarm does not make regret linear. With a plant
outside of the class the learner's share of the time falls to zero.
"""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

FALSE_ALARM = 1e-3  # the probability of a false one, at most
FIRST_WAIT = 64
MAX_DOUBLINGS = 40
RUNNING, LEFT_BALL, MISFIT, CAPPED = 0, 1, 2, 3
REASONS = (
    (
        "halt",
        "the belief of the model acted on left the ball of radius state_bound: the model is wrong by much, "
        "or the bound too small; the fallback is in control from here on",
    ),
    (
        "misfit",
        "the observations fit no member of the class: the plant lies outside of it, or has changed; widen "
        "the family or check the units; the fallback, if there is one, is in control until a member "
        "fits again",
    ),
    (
        "cap",
        "max_switches is reached: the model acted on stays as it is; give VTRConstants with a larger one",
    ),
)


class Alarm(eqx.Module):
    """Who is in control, and until when."""

    status: Int[Array, ""]
    num_alarms: Int[Array, ""]
    until: Int[Array, ""]

    @staticmethod
    def quiet() -> "Alarm":
        """Before anything is observed."""
        return Alarm(jnp.asarray(RUNNING), jnp.asarray(0), jnp.asarray(0))

    @property
    def is_on(self) -> Bool[Array, ""]:
        """Whether the learner is not in control."""
        return (self.status == LEFT_BALL) | (self.status == MISFIT)

    def hear(self, misfit: Float[Array, ""], time: Int[Array, ""]) -> tuple["Alarm", Bool[Array, ""]]:
        """The alarm after another observation, and whether it rang at this one."""
        rings = misfit >= -math.log(FALSE_ALARM)
        return self.ring(rings, time, MISFIT), rings

    def ring(self, rings: Bool[Array, ""], time: Int[Array, ""], reason: int) -> "Alarm":
        """The alarm after a step, by which it goes on for longer each time."""
        was_on = self.status == reason
        num_alarms = self.num_alarms + (rings & ~was_on)
        wait = FIRST_WAIT * 2 ** jnp.clip(num_alarms - 1, 0, MAX_DOUBLINGS)
        until = jnp.where(rings, time + wait, self.until)
        ends = was_on & ~rings & (time >= until)
        status = jnp.where(rings, reason, jnp.where(ends, RUNNING, self.status))
        return Alarm(status, num_alarms, until)
