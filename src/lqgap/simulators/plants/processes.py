"""Computers and buildings: a web server, racks that heat each other, rooms with walls between them.

Racks and rooms stand in a row: `neighbours` is 1 where two are adjacent, `exchange` its graph Laplacian, and

    laplacian:       A = (1 + self_heating) I + coupling neighbours ,       B = cooling I
    thermal_zones:   capacity x' = -x / wall - exchange x / partition + heater u
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from lqgap.arguments import read_count
from lqgap.simulators.box import ParameterBox
from lqgap.simulators.plants.quantities import Extent, make_family, positive, real
from lqgap.systems import LQG, zero_order_hold


def web_server(
    *,
    coupling: Extent = (0.8, 1.2),
    persistence: Extent = (0.8, 1.2),
    keep_alive: Extent = (0.8, 1.2),
    max_clients: Extent = (0.8, 1.2),
) -> ParameterBox:
    """The load of an Apache server: (processor, memory) use, driven by keep-alive time and number of clients.

    All parameters scale what was identified; 1 is nominal. A unit input moves the use by a thousandth.

    Args:
        coupling: scale of the effect of processor and memory use on each other.
        persistence: scale of the effect of either on itself.
        keep_alive: scale of the effect of the keep-alive time.
        max_clients: scale of the effect of the number of clients.
    """

    def build(coupling: Any, persistence: Any, keep_alive: Any, max_clients: Any) -> LQG:
        A = [[0.54 * persistence, -0.11 * coupling], [-0.026 * coupling, 0.63 * persistence]]
        B = [[-85e-4 * keep_alive, 4.4e-4 * max_clients], [-2.5e-4 * keep_alive, 2.8e-4 * max_clients]]
        return LQG(A, B, jnp.eye(2), R=1e-4 * jnp.eye(2))

    return make_family(
        build,
        {
            "coupling": real(coupling),
            "persistence": real(persistence),
            "keep_alive": real(keep_alive),
            "max_clients": real(max_clients),
        },
    )


def laplacian(
    *,
    coupling: Extent = (0.005, 0.015),
    self_heating: Extent = (0.005, 0.015),
    cooling: Extent = 1.0,
    racks: int = 3,
) -> ParameterBox:
    """Racks of a data centre in a row, each cooled and measured; the open loop is unstable.

    Args:
        coupling: part of a rack's temperature that each neighbour takes on in a step.
        self_heating: part by which a rack's own temperature grows in a step.
        cooling: temperature change of a unit input, K.
        racks: how many.
    """
    neighbours = _neighbours(read_count("racks", racks, least=1))
    identity = np.eye(len(neighbours))

    def build(coupling: Any, self_heating: Any, cooling: Any) -> LQG:
        A = (1 + self_heating) * identity + coupling * neighbours
        return LQG(A, cooling * identity, identity, Q=10 * identity)

    return make_family(
        build,
        {"coupling": real(coupling), "self_heating": real(self_heating), "cooling": real(cooling, "K")},
    )


def thermal_zones(
    *,
    capacity: Extent = (0.5, 1.5),
    wall: Extent = (5.0, 15.0),
    partition: Extent = (2.5, 7.5),
    heater: Extent = 1.0,
    dt: Extent = 0.25,
    rooms: int = 3,
) -> ParameterBox:
    """Rooms in a row with a heater and a thermometer each; temperatures are those above the outside.

    Args:
        capacity: heat that warms a room by a degree, kWh/K.
        wall: thermal resistance between a room and the outside, K/kW.
        partition: thermal resistance between neighbouring rooms, K/kW.
        heater: power of a unit input, kW.
        dt: time of a step, h.
        rooms: how many.
    """
    neighbours = _neighbours(read_count("rooms", rooms, least=1))
    identity = np.eye(len(neighbours))
    exchange = np.diag(neighbours.sum(axis=1)) - neighbours

    def build(capacity: Any, wall: Any, partition: Any, heater: Any, dt: Any) -> LQG:
        A = -(identity / wall + exchange / partition) / capacity
        A, B = zero_order_hold(A, heater / capacity * identity, dt=dt)
        return LQG(A, B, identity)

    return make_family(
        build,
        {
            "capacity": positive(capacity, "kWh/K"),
            "wall": positive(wall, "K/kW"),
            "partition": positive(partition, "K/kW"),
            "heater": real(heater, "kW"),
            "dt": positive(dt, "h"),
        },
    )


def _neighbours(count: int) -> np.ndarray:
    return np.eye(count, k=1) + np.eye(count, k=-1)
