"""What a study found, as plain values: the border between computing and showing.

A record is JSON and back without loss; infinity and NaN are the texts "inf", "-inf" and "nan". What was not
computed is None. Two runs of one study give the same record, but for `timings` and what was cut.

Gaps are V^pi - V* over steps 0..horizon; methods and real plants are referred to by name.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, model_validator

FORMAT = 2  # of records; raised when a reader of older ones would misread a new one


def read_number(value: Any) -> Any:
    """What JSON cannot write as a number, or writes as a whole one."""
    return float(value) if value in ("inf", "-inf", "nan") or type(value) is int else value


Number = Annotated[
    float,
    BeforeValidator(read_number),
    PlainSerializer(lambda value: value if math.isfinite(value) else str(value), when_used="json"),
]
Kind = Literal["fixed", "trained", "adaptive", "reference"]
Over = Literal["class", "ranges"]  # of its members, or of all plants of the family


class Part(BaseModel):
    """A piece of a record: it does not change, and has no fields but its own."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Estimate(Part):
    """What rollouts say of a mean; its standard error is zero where it was computed exactly.

    Where no interval is claimed, since the tail is heavy or rollouts are too few to tell, `mean` and `stderr`
    are those of the sample and say little: what single runs cost says more.
    """

    mean: Number
    stderr: Number
    low: Number | None = None  # ends of a 95 % interval of the true mean; None where none is claimed
    high: Number | None = None
    median: Number | None = None  # of single runs
    most: Number | None = None  # what nine in ten runs do not exceed
    diverged: Number = 0.0  # the share of runs that cost more than 100 times the optimum

    @property
    def has_interval(self) -> bool:
        """Whether the mean is known, within its interval."""
        return self.low is not None and self.high is not None


class Parameter(Part):
    """An uncertain parameter of the family, and its range."""

    name: str
    unit: str  # empty if it has none
    low: Number
    high: Number


class Signals(Part):
    """What is known of inputs and outputs; empty where nothing is."""

    dt: Number | None = None  # time of a step
    time_unit: str = "s"
    inputs: list[str] = []  # names, with units
    outputs: list[str] = []
    limits: list[list[Number]] = []  # [low, high] of every input
    rate_limits: list[Number] = []  # per unit of time
    x0: list[Number] = []  # the operating point
    u0: list[Number] = []
    y0: list[Number] = []


class Plant(Part):
    """A real plant: no method is told its parameters."""

    name: str
    parameters: dict[str, Number]  # empty for a plant outside of the family, given by its matrices
    is_member: bool  # within the ranges of the family, which the theory assumes
    optimal_cost: Number  # V*, what a controller that knows it costs


class Condition(Part):
    """A condition of the theory, judged on the class."""

    assumption: str  # "A1", "A2", "A3", or "-" for a condition that the paper does not number
    statement: str
    as_printed: bool
    repaired: bool  # holds in the corrected form, or after the remedy
    value: Number
    margin: Number
    set_by: str  # the member that sets the value
    remedy: str  # empty if none is needed


class Audit(Part):
    """Which assumptions hold, and what was done about those that do not."""

    num_members: int
    num_kept: int
    actions: list[str]  # what was pruned or repaired, in words
    conditions: list[Condition]
    constants: dict[str, Number]


class Look(Part):
    """Training, seen at one step on noise that stays the same."""

    stage: int
    step: int
    worst: Number
    mean: Number
    best: Number  # so far, of what is trained for


class Margin(Part):
    """A margin of a linear method, and the plant on which it is least (`evaluation.margins`)."""

    kind: str
    value: Number
    plant: str


class Method(Part):
    """A controller that is judged."""

    name: str
    label: str
    kind: Kind  # "reference" knows what a controller cannot know
    description: str
    history: list[Look]  # empty if it was not trained
    policy_file: str | None  # relative to the folder of the run
    has_improved: bool = True  # whether training got it beyond what it began with, if it was trained
    unfit: str | None = None  # why it must not be put on a plant; None if nothing speaks against it
    margins: list[Margin] = []  # none if it is not linear
    cut: bool = False  # whether its training or the search for its worst plant was cut by its budget of time


class LeftOut(Part):
    """A method that could not be made or evaluated, and why."""

    name: str
    label: str
    reason: str


class MethodGaps(Part):
    """How far from optimal a method is; None where it was not measured."""

    method: str
    grid_worst: Estimate | None  # over the members that it was designed on
    grid_mean: Estimate | None
    box_worst: Estimate | None  # over the members and what a search found; the bracket's of its method
    box_worst_at: dict[str, Number] | None
    real: list[Estimate]  # of every real plant, in their order; all methods are evaluated on the same noise
    real_worst: Estimate
    real_mean: Estimate  # its error takes into account that plants share noise
    later_worst: Estimate | None = None  # of a later horizon, in a task that goes on; on the worst plant


class Gaps(Part):
    """The gaps of all methods over one horizon."""

    horizon: int
    num_rollouts: int
    methods: list[MethodGaps]


class Series(Part):
    """A quantity against the horizon."""

    method: str | None  # None for a bound that no method belongs to
    label: str
    kind: Literal["worst gap", "lower bound"]
    horizons: list[int]
    values: list[Estimate]

    @model_validator(mode="after")
    def _fits(self) -> "Series":
        _require_shape("values", self.values, len(self.horizons))
        return self


class HorizonStudy(Part):
    """How the largest gap over the class, or of those found in the ranges, grows with the horizon."""

    series: list[Series]
    over: Over = "class"


class GapMap(Part):
    """The gap of one method over two parameters: a row for each value of the second."""

    method: str
    gap: list[list[Number]]
    is_mean: bool = True  # else what nine in ten runs cost at most, since means cannot be known


class HeatMap(Part):
    """Gaps over two parameters of the box, the others being held."""

    x: Parameter
    y: Parameter
    x_values: list[Number]
    y_values: list[Number]
    held: dict[str, Number]
    optimal_cost: list[list[Number]]
    maps: list[GapMap]

    @model_validator(mode="after")
    def _fits(self) -> "HeatMap":
        if not (self.x_values and self.y_values):
            raise ValueError("a map has a value of each of its parameters at least")
        for name, table in [("optimal_cost", self.optimal_cost), *((m.method, m.gap) for m in self.maps)]:
            _require_shape(name, table, len(self.y_values), len(self.x_values))
        return self


class Bracket(Part):
    """The best possible worst gap, over the class or over the ranges, lies between `lower` and `upper`.

    Over ranges, `upper` is that of the largest gap which a search found: there may be a worse plant.
    """

    method: str
    horizon: int
    num_members: int  # of the class, with those that the search found
    lower: Number  # no policy whatever has a smaller worst gap
    kind: str
    set_by: list[str]  # the members, or the prior, that the lower bound rests on
    worst: Estimate  # gap of the method over the same plants
    upper: Number  # its confidence limit, for all of them at once
    confidence: Number  # with which both ends hold
    factor: Number  # upper / lower: the method's worst gap is at most this many times the best possible
    over: Over = "class"
    bounds_class: bool = True  # whether `lower` is also one of the class, if it is over the ranges
    reasons: list[str] = []  # why the lower bound may be weak
    cut: bool = False  # whether its search was cut by its budget of time


class Trajectory(Part):
    """One run of a method on a real plant; time is the first axis."""

    method: str
    plant: str
    cost: list[Number]
    u: list[list[Number]]
    y: list[list[Number]]

    @model_validator(mode="after")
    def _fits(self) -> "Trajectory":
        for name, signal in (("u", self.u), ("y", self.y)):
            _require_shape(name, signal, len(self.cost), len(signal[0]) if signal else 0)
        return self


class Response(Part):
    """Steps of the set-point and the load, without noise, on some plants; by plant, time and channel."""

    method: str
    plants: list[str]
    steps: list[int]  # at which signals are kept
    follow: list[int]  # numbers of outputs
    reference: list[list[Number]]  # of these outputs, by time
    y: list[list[list[Number]]]
    u: list[list[list[Number]]]
    figures: list[Margin]  # where they are worst; of the step, times in steps

    @model_validator(mode="after")
    def _fits(self) -> "Response":
        _require_shape("reference", self.reference, len(self.steps), len(self.follow))
        for name, signal in (("y", self.y), ("u", self.u)):
            if not (signal and signal[0] and signal[0][0]):
                raise ValueError(f"{name} is empty")
            _require_shape(name, signal, len(self.plants), len(self.steps), len(signal[0][0]))
        return self


class Event(Part):
    """Something that a method did that learns."""

    time: int
    text: str


class Adaptation(Part):
    """A method that learns at work on a real plant; None where it has no such thing."""

    method: str
    plant: str
    times: list[int]
    regret: list[Number]  # against the optimal average cost, up to each of the times
    set_size: list[int] | None  # members that are still possible
    model: list[str] | None  # the one acted on
    switches: list[int]  # times at which it changed
    events: list[Event]
    figures: dict[str, list[Number]] = {}  # of its own, by name

    @model_validator(mode="after")
    def _fits(self) -> "Adaptation":
        told = {"regret": self.regret, "set_size": self.set_size, "model": self.model, **self.figures}
        for name, values in told.items():
            _require_shape(name, self.times if values is None else values, len(self.times))
        return self


class BoundRow(Part):
    """A row of the sheet of bounds; None where a column has no such row."""

    name: str
    printed: Number | None
    corrected: Number | None
    actual: Number | None  # with the norms of the class in place of uniform bounds


class BoundsSheet(Part):
    """Bounds of the theory; a vacuous one is no smaller than the cost of zero input."""

    title: str
    horizon: int
    rows: list[BoundRow]
    vacuous: dict[str, bool]  # by column


class Record(Part):
    """All that a report shows."""

    format: Literal[2]
    title: str
    study: str  # resolved, as TOML
    seed: int
    precision: str
    versions: dict[str, str]
    parameters: list[Parameter]
    signals: Signals = Signals()
    warnings: list[str]
    methods: list[Method]
    left_out: list[LeftOut] = []
    real: list[Plant]
    recommended: str | None = None  # the method to put on the plant
    equals: list[str] = []  # methods that are as good, within what was measured
    better: str | None = None  # a better method that has no policy file to put on the plant
    audit: Audit | None = None
    gaps: Gaps | None = None
    horizons: HorizonStudy | None = None
    heat_map: HeatMap | None = None
    bracket: Bracket | None = None
    trajectories: list[Trajectory] | None = None
    responses: list[Response] = []
    adaptations: list[Adaptation] | None = None
    bounds: BoundsSheet | None = None
    timings: dict[str, Number]  # seconds of each unit of work, by its name, such as "train robust"

    @model_validator(mode="after")
    def _refers_to_what_it_has(self) -> "Record":
        _require_known("method", [method.name for method in self.methods], self._methods_referred_to())
        runs = [*(self.trajectories or ()), *(self.adaptations or ())]
        _require_known("plant", [plant.name for plant in self.real], [run.plant for run in runs])
        for gaps in self.gaps.methods if self.gaps else ():
            if len(gaps.real) != len(self.real):
                raise ValueError(f"{gaps.method} has {len(gaps.real)} gaps for {len(self.real)} real plants")
        return self

    def method(self, name: str) -> Method:
        """The method of this name."""
        return next(method for method in self.methods if method.name == name)

    def without_timings(self) -> "Record":
        """What two runs of the same study have in common: everything else."""
        return self.model_copy(update={"timings": {}})

    def _methods_referred_to(self) -> list[str]:
        parts: list[Any] = [*(self.trajectories or ()), *(self.adaptations or ()), *self.responses]
        parts += self.gaps.methods if self.gaps else []
        parts += self.heat_map.maps if self.heat_map else []
        parts += self.horizons.series if self.horizons else []
        parts += [self.bracket] if self.bracket else []
        named = [*(part.method for part in parts), self.recommended, *self.equals, self.better]
        return [name for name in named if name is not None]


def _require_shape(name: str, found: Sequence[Any], length: int, *inside: int) -> None:
    if len(found) != length:
        raise ValueError(f"{name} has {len(found)} entries, expected {length}")
    for part in found if inside else ():
        _require_shape(f"a part of {name}", part, *inside)


def _require_known(what: str, known: Sequence[str], used: Sequence[str]) -> None:
    for name in used:
        if name not in known:
            raise ValueError(f"the record refers to the {what} {name!r}, which it does not list")
