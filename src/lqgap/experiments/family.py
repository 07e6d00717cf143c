"""From the plant of a study to a family of simulators; errors name the line of the study.

A family is a box of parameters, all plants near one (`Ball`), or a finite class.
"""

import contextlib
import importlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from lqgap.errors import CorruptFileError, InvalidArgumentError, InvalidSystemError, LqgapError, did_you_mean
from lqgap.experiments.expressions import names_in, read_formula, value_of
from lqgap.experiments.matrices import family_of_matrices
from lqgap.experiments.parsing import Source
from lqgap.experiments.plant_tables import (
    FamilyPlant,
    FilePlant,
    MatrixPlant,
    OperatingPoint,
    PythonPlant,
    extent_of,
    time_of_step,
)
from lqgap.experiments.provenance import is_own
from lqgap.experiments.study import Cost, Study
from lqgap.interop.mat import load_mat
from lqgap.simulators import AbstractFamily, Ball, Finite, ParameterBox, offset_free, plants
from lqgap.simulators.offset_free import OffsetFree
from lqgap.systems import LQG, Signals
from lqgap.systems.lqg import EXTENSIONS

Family = AbstractFamily | Finite
_LOADED: set[str] = set()  # modules of the last study, which another one may have under the same names


def make_family(study: Study, source: Source, *, trust: bool = False) -> Family:
    """The family of a study, with the cost of the study.

    Args:
        trust: whether a study may name a Python function, which is then imported and called.
    """
    require_trust(study.plant, source, trust=trust)
    try:
        match study.plant:
            case FamilyPlant():
                family = _built_in(study.plant, source)
            case MatrixPlant():
                family = family_of_matrices(study.plant, source)
            case FilePlant():
                family = _from_file(study.plant, source)
            case PythonPlant():
                family = _from_python(study.plant.python, source)
    except InvalidArgumentError as error:
        raise _placed(error, source, place_of_member(error, study, otherwise="plant")) from None
    try:
        family = family if study.cost is None else _with_cost(family, study.cost)
    except InvalidArgumentError as error:
        raise _placed(error, source, ("cost",)) from None
    try:
        return add_loads(family, study)
    except LqgapError as error:
        raise _placed(error, source, ("plant", "loads")) from None


def require_trust(plant: Any, source: Source, *, trust: bool) -> None:
    """Raise if a study names a function that may not be imported."""
    if isinstance(plant, PythonPlant) and not trust:
        raise source.error(
            ("plant", "python"),
            f"{plant.python} is not imported, because that runs code of the study with your rights: read it, "
            f"then add --trust",
        )


def add_loads(plants: Any, study: Study) -> Any:
    """Plants, or a family, with the loads of the study, if it has some."""
    loads = study.plant.loads
    if loads is None:
        return plants
    dt, _ = time_of_step(study.plant)
    for name, value in loads.model_dump().items():
        if dt is None and isinstance(value, str) and names_in(read_formula(value)):
            raise InvalidArgumentError(f"{name} depends on dt, and the time of a step is not known")
    size, drift = (
        float(value_of(read_formula(value), {"dt": dt})) if isinstance(value, str) else value
        for value in (loads.size, loads.drift)
    )
    return offset_free(plants, load=size, drift=drift)


def place_of_member(error: LqgapError, study: Study, *, otherwise: str) -> tuple[str, ...]:
    """Where a study is to blame for a member that cannot be built: at a matrix, if it has that."""
    name = str(error).partition(" ")[0]
    if isinstance(study.plant, MatrixPlant) and getattr(study.plant, name, None) is not None:
        return "plant", name
    return ("plant",) if isinstance(error, InvalidSystemError) else (otherwise,)


def signals_of(study: Study, family: Family, source: Source) -> Signals:
    """What the study and its family say of signals; what the study says comes first."""
    plant = study.plant
    own = _own_signals(family)
    if isinstance(plant, FilePlant):
        _, dt = load_mat(source.folder / plant.file, sampling_time=plant.sampling_time, dt=plant.dt)
        own = Signals(dt=dt, time_unit=plant.time_unit)
    keys = plant.model_dump(include={"inputs", "outputs", "limits", "rate_limits"}, exclude_none=True)
    point = plant.operating_point.model_dump() if plant.operating_point else {}
    try:
        example = family[0] if isinstance(family, Finite) else family.nominal()
    except LqgapError as error:
        raise source.error(place_of_member(error, study, otherwise="plant"), str(error)) from None
    try:
        return replace(own, **keys, **point).of_size(
            num_inputs=example.num_inputs, num_outputs=example.num_outputs
        )
    except InvalidArgumentError as error:
        raise source.error(_place_of_signal(error, study), str(error)) from None


def _place_of_signal(error: LqgapError, study: Study) -> tuple[str, ...]:
    """At the key that an error begins with, if the study has it."""
    name = str(error).partition(" ")[0]
    key = "operating_point" if name in OperatingPoint.model_fields else name
    return ("plant", key) if getattr(study.plant, key, None) is not None else ("plant",)


def _own_signals(family: Family) -> Signals:
    family = family.family if isinstance(family, OffsetFree) else family
    return family.signals if isinstance(family, ParameterBox) else Signals()


def _placed(error: LqgapError, source: Source, path: tuple[str | int, ...]) -> LqgapError:
    """The error with file and line, if it does not have them yet."""
    return error if str(error).startswith(source.name) else source.error(path, str(error))


def _built_in(plant: FamilyPlant, source: Source) -> Family:
    known = plants.FAMILIES
    if plant.family not in known:
        hint = did_you_mean(plant.family, known)
        raise source.error(("plant", "family"), f"there is no family {plant.family!r}{hint}")
    make = known[plant.family]
    quantities = list(inspect.signature(make).parameters)
    given = plant.model_extra or {}
    for name in given:
        if name not in quantities:
            hint = did_you_mean(name, quantities) or f"; there are {', '.join(quantities)}"
            raise source.error(("plant", name), f"{plant.family} has no such quantity{hint}")
    return make(**{name: extent_of(value) for name, value in given.items()})


def _from_file(plant: FilePlant, source: Source) -> Family:
    try:
        systems, _ = load_mat(source.folder / plant.file, sampling_time=plant.sampling_time, dt=plant.dt)
    except CorruptFileError as error:
        raise CorruptFileError(str(source.error(("plant", "file"), str(error)))) from None
    if systems.A.ndim == 3:
        if plant.radius is not None:
            raise source.error(("plant", "radius"), "the file has a class of plants already")
        return Finite(systems)
    if plant.radius is None:
        raise source.error(("plant", "file"), "it has one plant: say by which radius it may be off")
    return Ball(systems, radius=plant.radius)


def _from_python(target: str, source: Source) -> Family:
    module, _, name = target.partition(":")
    try:
        with _importing_from(source.folder.resolve()):
            family = getattr(importlib.import_module(module), name)()
    except LqgapError:
        raise
    except Exception as error:  # whatever the user's code raises
        reason = f"{type(error).__name__}: {error}"
        raise source.error(("plant", "python"), f"{target} failed: {reason}") from error
    if isinstance(family, AbstractFamily | Finite):
        return family
    wanted = "a family or a finite class of lqgap.simulators"
    raise source.error(("plant", "python"), f"it returned a {type(family).__name__}, expected {wanted}")


@contextlib.contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Modules are found in this folder first, and read anew: they may have changed since they were read last.

    No compiled files are written: these tell an old source from a new one by its time and size alone.
    """
    for name, module in list(sys.modules.items()):
        if name in _LOADED or is_own(name, getattr(module, "__file__", None), folder):
            del sys.modules[name]
    before, writes_nothing = set(sys.modules), sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = writes_nothing
        _LOADED.clear()
        new = {name: getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before}
        _LOADED.update(name for name, file in new.items() if is_own(name, file, folder))


def _with_cost(family: Family, cost: Cost) -> Family:
    weights = {
        name: getattr(cost, name) for name in ("Q", "R", *EXTENSIONS) if getattr(cost, name) is not None
    }

    def weigh(plant: LQG) -> LQG:
        return LQG(**{**plant.matrices(), **weights})

    if isinstance(family, Finite):
        weigh(family[0])  # values are checked on one plant; under `vmap` only shapes are
        systems = jax.vmap(weigh)(family.systems)
        return Finite(systems, family.parameters, names=family.names, units=family.units)
    if not isinstance(family, ParameterBox | Ball):
        raise InvalidArgumentError(
            f"a {type(family).__name__} has its own cost: set it in the function that makes the family"
        )
    weigh(family.nominal())
    extents = {p.name: list(p.choices) if p.choices else (p.low, p.high) for p in family.parameters}
    units = {p.name: p.unit for p in family.parameters}
    return ParameterBox(
        lambda **values: weigh(family.build(**values)), extents, units=units, signals=_own_signals(family)
    )
