"""The table [plant] of a study: a family by name, matrices, a file or a function, and its signals."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pydantic
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema

from lqgap.errors import LqgapError, warn
from lqgap.experiments.expressions import names_in, read_formula, require_free_name
from lqgap.experiments.methods.base import Table
from lqgap.progress import SECONDS, read_time


class Choices(Table):
    """A parameter that is one of a few values."""

    choices: list[float] = Field(min_length=1)


def read_extent(value: Any) -> Any:
    """A number, an interval or choices; one message for all three."""
    if isinstance(value, Choices):
        return value
    if isinstance(value, Mapping) and set(value) == {"choices"}:
        return Choices(choices=value["choices"])
    if not all(map(_is_number, value if isinstance(value, list) else [value])):
        raise ValueError("expected a number, an interval [low, high] or {choices = [...]}")
    if isinstance(value, list) and (len(value) != 2 or value[0] > value[1]):
        raise ValueError("an interval is [low, high]; several values to choose from are {choices = [...]}")
    return value


def extent_of(value: Any) -> Any:
    """As the library's families take it: a pair for an interval, a list for choices."""
    if isinstance(value, Choices):
        return list(value.choices)
    return tuple(value) if isinstance(value, list) else value


EXTENT_SCHEMA = {
    "anyOf": [
        {"type": "number"},
        {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        {"type": "object", "properties": {"choices": {"type": "array", "items": {"type": "number"}}}},
    ]
}
Extent = Annotated[Any, BeforeValidator(read_extent), WithJsonSchema(EXTENT_SCHEMA)]
Matrix = Annotated[list[Annotated[list[float], Field(min_length=1)]], Field(min_length=1)]


def read_entry(value: Any) -> Any:
    """A number, or a formula of parameters, which stays as it is written."""
    if isinstance(value, str):
        read_formula(value)
    elif not _is_number(value):
        raise ValueError("expected a number, or a formula of parameters in quotes")
    return value


def read_delay(value: Any) -> Any:
    """A number or a formula, or one for each input."""
    return list(map(read_entry, value)) if isinstance(value, list) and value else read_entry(value)


def read_name(value: str) -> str:
    """A name that formulas may have."""
    require_free_name(value)
    return value


Name = Annotated[str, Field(max_length=60), AfterValidator(read_name)]
ENTRY_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "string"}]}
Entry = Annotated[Any, BeforeValidator(read_entry), WithJsonSchema(ENTRY_SCHEMA)]
DELAY_SCHEMA = {"anyOf": [*ENTRY_SCHEMA["anyOf"], {"type": "array", "items": ENTRY_SCHEMA}]}
NamedMatrix = Annotated[list[Annotated[list[Entry], Field(min_length=1)]], Field(min_length=1)]


TimeUnit = Literal["ms", "s", "min", "h"]


class OperatingPoint(Table):
    """Where the plant is linear: what signals are when all deviations are zero."""

    x0: list[float] = Field(default=[])
    u0: list[float] = Field(default=[])
    y0: list[float] = Field(default=[])


def read_deviation(value: Any) -> Any:
    """A positive number, or one for each input, or a formula of dt."""
    if isinstance(value, str):
        if names_in(read_formula(value)) - {"dt"}:
            raise ValueError("expected a formula of dt alone: loads are the same for all plants")
    elif not (
        value
        and all(_is_number(each) and each > 0 for each in (value if isinstance(value, list) else [value]))
    ):
        raise ValueError("expected a positive number, one for each input, or a formula of dt in quotes")
    return value


Deviation = Annotated[Any, BeforeValidator(read_deviation), WithJsonSchema(DELAY_SCHEMA)]


class Loads(Table):
    """Unknown loads on all inputs: their standard deviation at the start, and of their change in a step."""

    size: Deviation
    drift: Deviation


class Measured(Table):
    """Disturbances that are measured: size in the long run, noise of their sensors, how they decay."""

    size: Annotated[float, Field(gt=0)]
    noise: Annotated[float, Field(gt=0)]
    decay: Annotated[float, Field(ge=0, lt=1)] = 0.9999


class AbstractPlant(Table):
    """What may be said of the signals of any plant."""

    inputs: list[str] | None = None
    outputs: list[str] | None = None
    limits: float | list[float] | list[list[float]] | None = None
    rate_limits: float | list[float] | None = None
    operating_point: OperatingPoint | None = None
    loads: Loads | None = None


class FamilyPlant(AbstractPlant):
    """A built-in family; every other key is one of its quantities."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, Extent]  # pyright: ignore[reportIncompatibleVariableOverride]

    family: str


class MatrixPlant(AbstractPlant):
    """Matrices whose entries may be formulas of parameters; with dt, A, B and W are in continuous time."""

    A: NamedMatrix
    B: NamedMatrix
    C: NamedMatrix
    Q: NamedMatrix | None = None
    R: NamedMatrix | None = None
    W: NamedMatrix | None = None
    V: NamedMatrix | None = None
    S0: NamedMatrix | None = None
    Qx: NamedMatrix | None = None
    N: NamedMatrix | None = None
    G: NamedMatrix | None = None
    E: NamedMatrix | None = None
    measured: Measured | None = None
    parameters: dict[Name, Extent] = Field(min_length=1)
    dt: float | None = Field(default=None, gt=0)
    time_unit: TimeUnit = "s"
    delay: Annotated[Any, BeforeValidator(read_delay), WithJsonSchema(DELAY_SCHEMA)] = None

    @pydantic.model_validator(mode="after")
    def _disturbs(self) -> "MatrixPlant":
        if (self.E is None) != (self.measured is None):
            raise ValueError("E, how a measured disturbance moves the states, and measured belong together")
        if self.E is not None and self.G is not None:
            raise ValueError("with G, states are more than those that E moves: give one of them")
        return self

    @pydantic.model_validator(mode="after")
    def _delays_in_time(self) -> "MatrixPlant":
        if self.delay is not None and self.dt is None:
            raise ValueError("delay is a time, and there is no dt: a delay of whole steps is states of A")
        if self.dt is not None and "dt" in self.parameters:
            raise ValueError("dt is the time of a step, and cannot be a parameter too")
        return self


class FilePlant(AbstractPlant):
    """A MAT file: a class of plants, or one plant and by how much every entry may be off."""

    file: str
    radius: float | None = Field(default=None, gt=0)
    sampling_time: float | None = Field(default=None, gt=0)
    dt: float | None = Field(default=None, gt=0)
    time_unit: TimeUnit = "s"


class PythonPlant(AbstractPlant):
    """A function that returns a family or a finite class."""

    python: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")


PLANTS = {"family": FamilyPlant, "A": MatrixPlant, "file": FilePlant, "python": PythonPlant}


def which_plant(value: Any) -> str | None:
    """The tag of the kind of plant that a table describes."""
    keys = value if isinstance(value, Mapping) else type(value).model_fields if value is not None else ()
    return next((f"<{key}>" for key in PLANTS if key in keys), None)


Plant = Annotated[
    Annotated[FamilyPlant, Tag("<family>")]
    | Annotated[MatrixPlant, Tag("<A>")]
    | Annotated[FilePlant, Tag("<file>")]
    | Annotated[PythonPlant, Tag("<python>")],
    Discriminator(which_plant),
]


def count_steps(value: Any, plant: Any) -> Any:
    """A number of steps as it is; that of a time such as "2 s", rounded up, if a step has a known length."""
    if not isinstance(value, str):
        return value
    found = read_time(value)
    if found is None:
        raise ValueError(
            f"expected a number of steps, or a time in one of {', '.join(SECONDS)}, such as '2 s'"
        )
    if plant is None:
        return 1  # it has an error of its own, which is told
    dt, unit = time_of_step(plant)
    if dt is None:
        raise ValueError(
            "expected a number of steps: how long a step is say matrices with dt, files with sampling_time, "
            "and built-in families with one dt"
        )
    steps = found[0] * SECONDS[found[1]] / (dt * SECONDS[unit])
    if not math.isfinite(steps):
        raise ValueError("more steps than can be counted")
    whole = math.ceil(steps - 1e-9 * steps)
    if whole - steps > 1e-6 * steps:
        warn(f"{value.strip()} are {steps:.6g} steps of {dt:g} {unit}: {whole} are taken")
    return whole


def time_of_step(plant: Any) -> tuple[float | None, str]:
    """How long a step is, if the study says so, and in which unit."""
    if not isinstance(plant, FamilyPlant):
        dt = getattr(plant, "dt", None) or getattr(plant, "sampling_time", None)
        return dt, getattr(plant, "time_unit", "s")
    from lqgap.simulators.plants import FAMILIES  # which loads JAX

    given = {name: extent_of(value) for name, value in (plant.model_extra or {}).items()}
    try:
        signals = FAMILIES[plant.family](**given).signals
    except (KeyError, TypeError, LqgapError):  # what is wrong is told where the family is made
        return 1.0, "s"
    return (signals.dt if isinstance(signals.dt, float) else None), signals.time_unit


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond double precision
        return False
