"""Small classes that are hard to learn: members are hard to distinguish and need opposite inputs.

    unknown_sign:   A = pole ,     B = sign gain ,                     C = 1
    phase_pair:     A = [[1, 1], [0, 1]] ,   B = [0, 1]' ,             C = [1 - zero, 1] / sqrt(zero)
    overactuated:   A = pole ,     B = [gain, sign c horizon^-1/4] ,   C = 1
    spare_actuator: A = pole ,     B = [gain, spare] ,                 C = 1

The transfer function of phase_pair is (s - zero) / (sqrt(zero) (s - 1)^2): members with `zero` and 1 / `zero`
differ in phase and not in magnitude. The controller that is optimal where `spare` is zero never uses the
second actuator, so that all members look alike under it.
"""

from typing import Annotated

import jax.numpy as jnp

from lqgap.simulators.plants.quantities import Extent, named_family, plus_or_minus, positive, real, whole
from lqgap.systems import LQG

SIGNS = [-1, 1]
MIRRORED_ZEROS = [1.01**-2, 1.01**2]
SPARE_GAINS = [0.0, 0.5, -0.5]


@named_family()
def unknown_sign(
    *,
    sign: Annotated[Extent, plus_or_minus()] = SIGNS,
    pole: Annotated[Extent, real()] = 0.95,
    gain: Annotated[Extent, positive()] = 1.0,
) -> LQG:
    """A first-order plant of which it is unknown whether an input pushes or pulls.

    Args:
        sign: 1 or -1, or the list of both.
        pole: A, the part of the state that is left after a step.
        gain: size of B.
    """
    return LQG([[pole]], [[sign * gain]], [[1.0]])


@named_family()
def phase_pair(*, zero: Annotated[Extent, positive()] = MIRRORED_ZEROS) -> LQG:
    """A double integrator with a zero just inside or just outside of the unit circle, and little noise.

    Args:
        zero: where the zero is; below 1 the plant is minimum phase. At 1 it has no optimum.
    """
    root = jnp.sqrt(zero)
    return LQG(
        [[1.0, 1.0], [0.0, 1.0]],
        [[0.0], [1.0]],
        [[(1 - zero) / root, 1 / root]],
        R=[[1e-2]],
        W=1e-4 * jnp.eye(2),
        V=[[1e-2]],
    )


@named_family()
def overactuated(
    *,
    sign: Annotated[Extent, plus_or_minus()] = SIGNS,
    horizon: Annotated[Extent, whole("steps", least=1)] = 400,
    c: Annotated[Extent, positive()] = 0.5,
    pole: Annotated[Extent, real()] = 0.9,
    gain: Annotated[Extent, real()] = 0.6,
) -> LQG:
    """The lower bound's class: a second input so weak that its sign takes a whole horizon to learn.

    Args:
        sign: of the second input: 1 or -1, or the list of both.
        horizon: number of steps to which the size c horizon^-1/4 of the second input is fitted.
        c: size of the second input at horizon 1.
        pole: A, the part of the state that is left after a step.
        gain: effect of the first input.
    """
    return LQG([[pole]], [[gain, sign * c * horizon**-0.25]], [[1.0]])


@named_family()
def spare_actuator(
    *,
    spare: Annotated[Extent, real()] = SPARE_GAINS,
    pole: Annotated[Extent, real()] = 0.9,
    gain: Annotated[Extent, real()] = 0.6,
) -> LQG:
    """A second actuator that may be dead, or wired the wrong way round.

    Args:
        spare: effect of the second input; 0 if it is dead.
        pole: A, the part of the state that is left after a step.
        gain: effect of the first input.
    """
    return LQG([[pole]], [[gain, spare]], [[1.0]])
