"""How methods answer a step of the set-point and one of the load, over the family.

A third of the time each: the reference leaves the operating point, a load joins, the reference goes back.
All figures but times are shares of the step:

    overshoot, overshoot back    how far the first step, and the one back, are exceeded
    settling                     the step from which outputs are off by at most 5 %, in the first third
    under load, error left       how far a load moves an output at most, and what is left of it in the end
"""

import itertools
from dataclasses import dataclass

import numpy as np

from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation import respond
from lqgap.experiments.plants import Plants, pad
from lqgap.experiments.record import Margin, Response
from lqgap.experiments.results import Responded
from lqgap.experiments.units import Workspace
from lqgap.policies import AbstractPolicy
from lqgap.simulators import AbstractFamily
from lqgap.systems import LQG
from lqgap.systems.setpoints import find_rest

UNABLE = "it cannot follow the set-point of [response]"
MAX_CORNERS, NUM_REAL = 8, 3
NUM_KEPT = 100  # instants of each third; closer together where it begins
OFF = 0.05  # of a step: an output that is settled is nearer


@dataclass(frozen=True)
class Schedule:
    """References, as deviations from the operating point, and loads, step by step."""

    follow: list[int]
    references: np.ndarray
    loads: np.ndarray

    @property
    def step(self) -> np.ndarray:
        """The step of every reference."""
        return self.references[0]

    @property
    def thirds(self) -> list[slice]:
        """The step, the load, the step back."""
        ends = [-(-len(self.references) * third // 3) for third in range(4)]
        return [slice(*pair) for pair in itertools.pairwise(ends)]


def make_schedule(plants: Plants) -> Schedule:
    """What the study asks for; errors name its place."""
    asked = plants.study.response
    if asked is None:
        raise InvalidArgumentError("the study has no table [response]")
    reference, (_, plant) = np.atleast_1d(np.asarray(asked.reference, dtype=float)), _middle(plants)
    follow = list(range(len(reference))) if asked.follow is None else asked.follow
    if len(follow) != len(reference) or not set(follow) <= set(range(plant.num_outputs)):
        key = "reference" if asked.follow is None else "follow"
        what = f"there are {plant.num_outputs} outputs, and each one followed has its number and a reference"
        raise plants.source.error(("response", key), f"it is {getattr(asked, key)}: {what}")
    step = reference - (np.asarray(plants.signals.y0)[follow] if plants.signals.y0 else 0.0)
    if not np.all(step):
        raise plants.source.error(("response", "reference"), "it is the operating point: there is no step")
    load = np.atleast_1d(np.asarray(asked.load, dtype=float))
    if len(load) not in (1, plant.num_inputs):
        what = f"expected a number, or one for each of {plant.num_inputs} inputs"
        raise plants.source.error(("response", "load"), f"it is {asked.load}: {what}")
    try:
        find_rest(plant.A, plant.B, plant.C, np.zeros_like(plant.B.mT), follow=follow)
    except InvalidArgumentError as error:
        raise plants.source.error(("response",), str(error)) from None
    num_steps = (asked.horizon or plants.study.horizon) + 1
    third = np.arange(num_steps)[:, None] * 3 // num_steps
    loads = np.broadcast_to(load, (num_steps, plant.num_inputs)) * (third >= 1)
    if plants.study.plant.loads:  # inputs are changes, and so are loads
        loads = np.diff(loads, axis=0, prepend=0.0)
    return Schedule(follow, step * (third < 2), loads)


def respond_to_steps(workspace: Workspace, name: str, policy: AbstractPolicy) -> Responded:
    """The response of a method in real signals; one that cannot follow a reference is unfit."""
    plants, schedule = workspace.plants, make_schedule(workspace.plants)
    try:
        policy.rest(schedule.follow)
    except InvalidArgumentError:
        return Responded(unfit=UNABLE)
    names, systems = _choose_plants(plants)
    found = respond(
        policy, systems, references=schedule.references, follow=schedule.follow, loads=schedule.loads
    )
    y, u = np.asarray(found.y), np.asarray(found.u)
    u = np.cumsum(u, axis=1) if plants.study.plant.loads else u
    u0, y0 = (np.asarray(point or 0.0) for point in (plants.signals.u0, plants.signals.y0))
    kept = _instants(schedule)
    reference = schedule.references + (y0[schedule.follow] if plants.signals.y0 else 0.0)
    return Responded(
        response=Response(
            method=name,
            plants=names,
            steps=kept.tolist(),
            follow=schedule.follow,
            reference=reference[kept].tolist(),
            y=(y0 + y[:, kept]).tolist(),
            u=(u0 + u[:, kept]).tolist(),
            figures=_judge(schedule, y[..., schedule.follow], names),
        )
    )


def _judge(schedule: Schedule, y: np.ndarray, names: list[str]) -> list[Margin]:
    """Every figure with the plant on which it is worst."""
    first, load, back = schedule.thirds
    error = (y - schedule.references) / schedule.step
    is_off = ~(np.abs(error[:, first]).max(axis=-1) <= OFF)
    last = np.where(is_off.any(axis=1), first.stop - np.argmax(is_off[:, ::-1], axis=1), 0)
    figures = {
        "overshoot": np.maximum(error[:, first].max(axis=(1, 2)), 0),
        "overshoot back": np.maximum(-error[:, back].min(axis=(1, 2)), 0),
        "settling": np.where(is_off[:, -1], np.inf, last),
        "under load": np.abs(error[:, load]).max(axis=(1, 2)),
        "error left": np.abs(error[:, load.stop - 1]).max(axis=-1),
    }
    return [
        Margin(kind=kind, value=float(values[worst]), plant=names[worst])
        for kind, values in figures.items()
        for worst in [int(np.argmax(values))]  # one that is no number counts as the largest
    ]


def _instants(schedule: Schedule) -> np.ndarray:
    """Steps to keep: all of them if they are few."""
    if len(schedule.references) <= 3 * NUM_KEPT:
        return np.arange(len(schedule.references))
    within = np.linspace(0, 1, NUM_KEPT) ** 2
    parts = [third.start + within * (third.stop - 1 - third.start) for third in schedule.thirds]
    return np.unique(np.round(np.concatenate(parts)).astype(int))


def _choose_plants(plants: Plants) -> tuple[list[str], LQG]:
    """The middle, corners of the ranges or some members, and some real plants."""
    family, (middle, nominal) = plants.family, _middle(plants)
    if isinstance(family, AbstractFamily):
        ends = [parameter.points(2) for parameter in family.parameters]
        corners = np.array(list(itertools.islice(itertools.product(*ends), 2**16)))
        corners = corners[family.is_inside(corners)]
        chosen = family.members(_spread(corners))
    else:
        chosen = family.subset(_spread(np.arange(len(family))))
    names = [middle, *(chosen.describe(index) for index in range(len(chosen))), *plants.real.names[:NUM_REAL]]
    rows = np.arange(min(NUM_REAL, len(plants.real.names)))
    return names, pad([nominal, chosen.systems, take(plants.real.systems, rows)])


def _spread(rows: np.ndarray) -> np.ndarray:
    """At most so many of these rows, evenly chosen."""
    chosen = np.linspace(0, len(rows) - 1, min(MAX_CORNERS, len(rows)))
    return rows[np.unique(np.round(chosen).astype(int))]


def _middle(plants: Plants) -> tuple[str, LQG]:
    """The plant of the nominal controller, and its name."""
    family = plants.family
    if isinstance(family, AbstractFamily):
        return "the middle", family.nominal()
    return family.describe(len(family) // 2), family[len(family) // 2]
