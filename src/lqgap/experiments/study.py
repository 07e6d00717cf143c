"""A study: all that determines a run, as tables that a TOML file has (see `parsing`).

Nothing is converted or guessed: unknown keys, wrong types, NaN and infinity are refused. `example.toml`
next to this module shows every key, and is the default study.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pydantic
from pydantic import AfterValidator, Field

from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.base import AbstractMethod, Table
from lqgap.experiments.plant_tables import Matrix, Plant, count_steps
from lqgap.experiments.toml import write_toml
from lqgap.progress import read_time


class Cost(Table):
    """Weights in place of the family's own."""

    Q: Matrix | None = None
    R: Matrix | None = None
    Qx: Matrix | None = None
    N: Matrix | None = None


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
    Qx: Matrix | None = None
    N: Matrix | None = None


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


class Steps(Table):
    """A step of the set-point, and one of the load, to which all controllers that can follow one respond."""

    reference: float | list[float]
    follow: list[Annotated[int, Field(ge=0)]] | None = None
    load: float | list[float] = 0.0
    horizon: Annotated[int, Field(ge=3, le=100_000)] | None = None


class Probing(Table):
    """The most that probing may add to an input, in its unit, or to each of them."""

    max: Annotated[float, Field(ge=0)] | list[Annotated[float, Field(ge=0)]]


def read_budget(value: str) -> str:
    """The time that a study may take, or a word."""
    if value in ("auto", "none"):
        return value
    found = read_time(value)
    if found is None or not 0 < found[0] < math.inf:
        raise ValueError("expected a time such as '5 min', or 'auto' or 'none'")
    return value


class Study(Table):
    """All that determines a run."""

    plant: Plant
    title: str = Field(default="", max_length=200)
    horizon: int = Field(default=100, ge=1, le=100_000)
    ends: bool = False
    seed: int = Field(default=0, ge=0, lt=2**32)
    budget: Annotated[str, AfterValidator(read_budget)] = "auto"
    probe: Literal["auto", "off"] | Probing = "auto"
    cost: Cost | None = None
    grid: Grid = Grid()
    methods: Methods = DEFAULT_METHODS
    real: Real = Real()
    evaluation: Evaluation = Evaluation()
    response: Steps | None = None

    @pydantic.field_validator("horizon", mode="before")
    @classmethod
    def _count(cls, value: Any, info: Any) -> Any:
        return count_steps(value, info.data.get("plant"))

    @pydantic.field_validator("evaluation", "response", mode="before")
    @classmethod
    def _count_all(cls, value: Any, info: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        plant = info.data.get("plant")
        counted = {"horizon": count_steps(value["horizon"], plant)} if "horizon" in value else {}
        if isinstance(value.get("horizons"), list):
            counted["horizons"] = [count_steps(each, plant) for each in value["horizons"]]
        return {**value, **counted}

    @pydantic.field_validator("response")
    @classmethod
    def _goes_on(cls, response: Steps | None, info: Any) -> Steps | None:
        if response is not None and info.data.get("ends"):
            raise ValueError("it asks how set-points are held, and with ends = true controllers stop")
        return response

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
