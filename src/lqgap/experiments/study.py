"""A study: all that determines a run, as tables that a TOML file has (see `parsing`).

Nothing is converted or guessed: unknown keys, wrong types, NaN and infinity are refused. `example.toml`
next to this module shows every key, and is the default study.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pydantic
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema

from lqgap.experiments.expressions import read_formula, require_free_name
from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.base import AbstractMethod, Table
from lqgap.experiments.toml import write_toml


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


def read_name(value: str) -> str:
    """A name that formulas may have."""
    require_free_name(value)
    return value


Name = Annotated[str, Field(max_length=60), AfterValidator(read_name)]
ENTRY_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "string"}]}
Entry = Annotated[Any, BeforeValidator(read_entry), WithJsonSchema(ENTRY_SCHEMA)]
NamedMatrix = Annotated[list[Annotated[list[Entry], Field(min_length=1)]], Field(min_length=1)]


class FamilyPlant(Table):
    """A built-in family; every other key is one of its quantities."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, Extent]  # pyright: ignore[reportIncompatibleVariableOverride]

    family: str


class MatrixPlant(Table):
    """Matrices whose entries may be formulas of parameters."""

    A: NamedMatrix
    B: NamedMatrix
    C: NamedMatrix
    Q: NamedMatrix | None = None
    R: NamedMatrix | None = None
    W: NamedMatrix | None = None
    V: NamedMatrix | None = None
    S0: NamedMatrix | None = None
    parameters: dict[Name, Extent] = Field(min_length=1)


class FilePlant(Table):
    """A MAT file: a class of plants, or one plant and by how much every entry may be off."""

    file: str
    radius: float | None = Field(default=None, gt=0)
    sampling_time: float | None = Field(default=None, gt=0)


class PythonPlant(Table):
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


class Cost(Table):
    """Weights in place of the family's own."""

    Q: Matrix | None = None
    R: Matrix | None = None


class Grid(Table):
    """The simulators that policies are made from."""

    points: (
        Literal["auto"]
        | Annotated[int, Field(ge=1, le=1000)]
        | dict[str, Annotated[int, Field(ge=1, le=1000)]]
    ) = "auto"
    sample: int | None = Field(default=None, ge=1, le=1000)


class Chosen(Table):
    """What is compared: a key for every method; None is left out."""

    @classmethod
    def by_default(cls, *names: str) -> "Chosen":
        """These methods with the options that they have by default."""
        return cls.model_validate({name: {} for name in names})

    @pydantic.model_validator(mode="after")
    def _has_one(self) -> "Chosen":
        if not self.chosen:
            raise ValueError(f"no method is listed, expected one or more of {', '.join(METHODS)}")
        return self

    @property
    def chosen(self) -> dict[str, AbstractMethod]:
        """The methods that are compared, by name."""
        return {name: part for name in METHODS if (part := getattr(self, name)) is not None}


if TYPE_CHECKING:
    Methods = Chosen
else:
    keys = {name: (method | None, None) for name, method in METHODS.items()}
    Methods = pydantic.create_model("Methods", __base__=Chosen, **keys)
DEFAULT_METHODS = Methods.by_default(*(name for name, method in METHODS.items() if method.is_default))


class OutsidePlant(Table):
    """A plant that need not belong to the family."""

    A: Matrix
    B: Matrix
    C: Matrix
    Q: Matrix | None = None
    R: Matrix | None = None
    W: Matrix | None = None
    V: Matrix | None = None
    S0: Matrix | None = None


class Real(Table):
    """The plants that methods are evaluated on."""

    count: int = Field(default=20, ge=0, le=10_000)
    plants: list[dict[str, float]] = Field(default=[])
    outside: list[OutsidePlant] = Field(default=[])

    @pydantic.model_validator(mode="after")
    def _has_one(self) -> "Real":
        if self.count + len(self.plants) + len(self.outside) == 0:
            raise ValueError("there is no real plant: give count, plants or outside")
        return self


class Evaluation(Table):
    """How precisely methods are evaluated."""

    rollouts: int = Field(default=256, ge=2, le=1_000_000)
    horizons: list[Annotated[int, Field(ge=1, le=100_000)]] = Field(default=[25, 50, 100])
    map_points: int = Field(default=9, ge=2, le=100)
    trajectories: int = Field(default=3, ge=0, le=100)
    bounds: bool = True


class Study(Table):
    """All that determines a run."""

    title: str = Field(default="", max_length=200)
    horizon: int = Field(default=100, ge=1, le=100_000)
    ends: bool = False
    seed: int = Field(default=0, ge=0, lt=2**32)
    plant: Plant
    cost: Cost | None = None
    grid: Grid = Grid()
    methods: Methods = DEFAULT_METHODS
    real: Real = Real()
    evaluation: Evaluation = Evaluation()

    @property
    def heading(self) -> str:
        """The title, or what stands in its place."""
        return self.title or "A study"

    def quick(self) -> "Study":
        """A first look: controllers that need no training, a coarse map, and no bounds."""
        evaluation = {"horizons": [], "map_points": 3, "trajectories": 0, "bounds": False}
        return self.model_copy(
            update={
                "methods": Methods.by_default("nominal", "linear", "bank"),
                "evaluation": self.evaluation.model_copy(update=evaluation),
            }
        )

    def to_toml(self) -> str:
        """The study with everything in its place, defaults included."""
        return write_toml(self.model_dump(exclude_none=True))


def schema() -> dict[str, Any]:
    """The JSON schema of study files, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Study.model_json_schema()}


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond double precision
        return False
