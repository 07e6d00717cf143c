"""Named families of plants from the literature, with sensible uncertainty.

Every physical parameter is a keyword: a number if it is known, a pair (low, high) if it is uncertain, a
list if it is one of a few values.
"""

from collections.abc import Callable

from lqgap.simulators.box import ParameterBox
from lqgap.simulators.plants.hard import overactuated, phase_pair, spare_actuator, unknown_sign
from lqgap.simulators.plants.mechanical import (
    acc_two_mass,
    dc_motor,
    hanging_pendulum_cart,
    mass_spring_damper,
    two_mass_spring,
)
from lqgap.simulators.plants.processes import laplacian, thermal_zones, web_server
from lqgap.simulators.plants.vehicles import boeing_747, double_integrator, uav_hover

__all__ = [
    "FAMILIES",
    "acc_two_mass",
    "boeing_747",
    "dc_motor",
    "double_integrator",
    "hanging_pendulum_cart",
    "laplacian",
    "mass_spring_damper",
    "overactuated",
    "phase_pair",
    "spare_actuator",
    "thermal_zones",
    "two_mass_spring",
    "uav_hover",
    "unknown_sign",
    "web_server",
]

FAMILIES: dict[str, Callable[..., ParameterBox]] = {
    "acc_two_mass": acc_two_mass,
    "boeing_747": boeing_747,
    "dc_motor": dc_motor,
    "double_integrator": double_integrator,
    "hanging_pendulum_cart": hanging_pendulum_cart,
    "laplacian": laplacian,
    "mass_spring_damper": mass_spring_damper,
    "overactuated": overactuated,
    "phase_pair": phase_pair,
    "spare_actuator": spare_actuator,
    "thermal_zones": thermal_zones,
    "two_mass_spring": two_mass_spring,
    "uav_hover": uav_hover,
    "unknown_sign": unknown_sign,
    "web_server": web_server,
}
