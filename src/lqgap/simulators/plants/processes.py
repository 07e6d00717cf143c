"""Computers and buildings: a web server, racks that heat each other, rooms with walls between them.

Racks and rooms stand in a row: `neighbours` is 1 where two are adjacent, `exchange` its graph Laplacian, and

    laplacian:       A = (1 + self_heating) I + coupling neighbours ,       B = cooling I
    thermal_zones:   capacity x' = -x / wall - exchange x / partition + heater u
"""

from typing import Annotated

import jax.numpy as jnp
import numpy as np

from lqgap.simulators.plants.quantities import Extent, named_family, positive, real, whole
from lqgap.systems import LQG, Signals, zero_order_hold


@named_family(Signals(inputs=["keep-alive time", "clients"], outputs=["processor use", "memory use"]))
def web_server(
    *,
    coupling: Annotated[Extent, real()] = (0.8, 1.2),
    persistence: Annotated[Extent, real()] = (0.8, 1.2),
    keep_alive: Annotated[Extent, real()] = (0.8, 1.2),
    max_clients: Annotated[Extent, real()] = (0.8, 1.2),
) -> LQG:
    """The load of an Apache server: (processor, memory) use, driven by keep-alive time and number of clients.

    All parameters scale what was identified; 1 is nominal. A unit input moves the use by a thousandth.

    Args:
        coupling: scale of the effect of processor and memory use on each other.
        persistence: scale of the effect of either on itself.
        keep_alive: scale of the effect of the keep-alive time.
        max_clients: scale of the effect of the number of clients.
    """
    A = [[0.54 * persistence, -0.11 * coupling], [-0.026 * coupling, 0.63 * persistence]]
    B = [[-85e-4 * keep_alive, 4.4e-4 * max_clients], [-2.5e-4 * keep_alive, 2.8e-4 * max_clients]]
    return LQG(A, B, jnp.eye(2), R=1e-4 * jnp.eye(2))


@named_family()
def laplacian(
    *,
    coupling: Annotated[Extent, real()] = (0.005, 0.015),
    self_heating: Annotated[Extent, real()] = (0.005, 0.015),
    cooling: Annotated[Extent, real("K")] = 1.0,
    racks: Annotated[Extent, whole(least=1)] = 3,
) -> LQG:
    """Racks of a data centre in a row, each cooled and measured; the open loop is unstable.

    Args:
        coupling: part of a rack's temperature that each neighbour takes on in a step.
        self_heating: part by which a rack's own temperature grows in a step.
        cooling: temperature change of a unit input, K.
        racks: how many.
    """
    identity = np.eye(racks)
    A = (1 + self_heating) * identity + coupling * _neighbours(racks)
    return LQG(A, cooling * identity, identity, Q=10 * identity)


@named_family()
def thermal_zones(
    *,
    capacity: Annotated[Extent, positive("kWh/K")] = (0.5, 1.5),
    wall: Annotated[Extent, positive("K/kW")] = (5.0, 15.0),
    partition: Annotated[Extent, positive("K/kW")] = (2.5, 7.5),
    heater: Annotated[Extent, real("kW")] = 1.0,
    dt: Annotated[Extent, positive("h")] = 0.25,
    rooms: Annotated[Extent, whole(least=1)] = 3,
) -> LQG:
    """Rooms in a row with a heater and a thermometer each; temperatures are those above the outside.

    Args:
        capacity: heat that warms a room by a degree, kWh/K.
        wall: thermal resistance between a room and the outside, K/kW.
        partition: thermal resistance between neighbouring rooms, K/kW.
        heater: power of a unit input, kW.
        dt: time of a step, h.
        rooms: how many.
    """
    neighbours, identity = _neighbours(rooms), np.eye(rooms)
    exchange = np.diag(neighbours.sum(axis=1)) - neighbours
    A = -(identity / wall + exchange / partition) / capacity
    A, B = zero_order_hold(A, heater / capacity * identity, dt=dt)
    return LQG(A, B, identity)


def _neighbours(count: int) -> np.ndarray:
    return np.eye(count, k=1) + np.eye(count, k=-1)
