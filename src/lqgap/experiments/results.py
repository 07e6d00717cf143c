"""What units of work find: parts of the record, with what other units need to know."""

from pydantic import Field

from lqgap.experiments.record import (
    Adaptation,
    Audit,
    BoundsSheet,
    Estimate,
    GapMap,
    HeatMap,
    Look,
    Margin,
    MethodGaps,
    Number,
    Over,
    Parameter,
    Part,
    Plant,
    Response,
    Series,
    Signals,
    Trajectory,
)


class Result(Part):
    """The result of a unit of work."""

    cut: bool = False  # by its budget of time: the best that it held then


class AuditedClass(Result):
    """The audit, and the members that it left."""

    kept: list[int]
    audit: Audit


class GrownClass(Result):
    """Parameters of the members that the class was in need of, and what was found."""

    added: list[list[Number]] = Field(default_factory=list)
    action: str | None = None


class JudgedPlants(Result):
    """The plants that methods are evaluated on, with their optimal costs."""

    parameters: list[Parameter]  # of the family
    signals: Signals = Signals()
    real: list[Plant]
    heat_map: HeatMap | None  # without the gaps of any method
    idle: list[Number]  # gaps of zero input on the class, the map and the real plants
    warnings: list[str]


class TrainedPolicy(Result):
    """The policy file of a method, if it has one."""

    file: str | None = None  # relative to the folder of the run
    checksum: str | None = None  # of the file
    history: list[Look] = Field(default_factory=list)
    has_improved: bool = True


class Judged(Result):
    """The gaps of a method."""

    gaps: MethodGaps
    heat_map: GapMap | None
    found: list[list[Number]] = Field(default_factory=list)  # by the search: their parameters
    totals: list[Number]  # single runs on the worst plant of all; of all methods on the same noise
    unfit: str | None = None  # what speaks against the method
    margins: list[Margin] = Field(default_factory=list)


class WorstGap(Result):
    """The largest gap of a method over the class and what a search found in the ranges, for the bracket."""

    worst: Estimate
    worst_at: dict[str, Number]  # parameters of its plant
    of_class: Estimate  # the largest of the class alone, from the same rollouts
    upper: Number  # confidence limit of all gaps at once
    num_plants: int


class Runs(Result):
    """Runs of a method on the first real plants."""

    runs: list[Trajectory]


class Responded(Result):
    """The response of a method to steps, or the reason why it has none although steps are asked for."""

    response: Response | None = None
    unfit: str | None = None


class Growth(Result):
    """The worst gap of a method against the horizon."""

    series: Series | None = None


class Adapted(Result):
    """What a method that learns did on the first real plants."""

    runs: list[Adaptation] = Field(default_factory=list)


class LowerBound(Result):
    """What no policy can beat over the class or, if the family has them, over the ranges."""

    value: Number
    kind: str
    set_by: list[str]  # the members, or the prior, that it rests on
    series: Series
    over: Over
    bounds_class: bool  # as well, if it is over the ranges
    confidence: Number
    reasons: list[str]  # why it may be weak


class Theory(Result):
    """The sheet of bounds; where theory does not apply, why."""

    sheet: BoundsSheet | None = None
    missing: str | None = None
