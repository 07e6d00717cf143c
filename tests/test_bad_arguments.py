"""Whatever is handed to a public function is taken, or refused by an error of the library."""

import collections
import contextlib
import importlib
import inspect
import signal
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from calls import NO_CALLS, RESULTS, calls, plant_of

import lqgap as lg

PACKAGES = (
    "adaptive evaluation identification interop linalg policies simulators simulators.plants systems theory "
    "training"
)
NUM_CALLS = 2_000
PATIENCE = 120  # seconds: no call takes that long unless it hangs


class HangError(BaseException):
    """A call that does not come back; no `except Exception` swallows it."""


def public_names():
    """The names that users import, and not the modules."""
    found = {name: getattr(lg, name) for name in lg.__all__}
    for package in PACKAGES.split():
        module = importlib.import_module(f"lqgap.{package}")
        names = getattr(module, "__all__", None) or [name for name in dir(module) if name[0] != "_"]
        found |= {name: getattr(module, name) for name in names}
    return {name: thing for name, thing in found.items() if not inspect.ismodule(thing)}


def test_every_public_name_has_a_call_or_is_listed_as_having_none(tmp_path):
    def is_free(name, thing):
        is_class = inspect.isclass(thing)
        return is_class and (issubclass(thing, Exception) or name.startswith("Abstract"))

    needed = {name for name, thing in public_names().items() if not is_free(name, thing)}
    known = {name.partition(".")[0].rstrip("()") for name in calls(tmp_path)}
    assert needed - known - RESULTS - NO_CALLS == set()
    assert (known | RESULTS | NO_CALLS) - needed == set()


def bad_values(rng):
    """What users hand over by mistake: other types, other shapes, values out of range."""
    size = tuple(rng.integers(0, 4, size=rng.integers(0, 4)))
    yield from (None, True, False, "no", "", "a\0b", b"x", Path("x"), object(), print, lg.LQG, Ellipsis, 3, 0)
    yield from (-1, 2.5, -0.5, 10**30, 1e308, float("nan"), float("inf"), 1j, np.float32(0.1), np.int8(1))
    yield from (
        [],
        (),
        {},
        set(),
        {1},
        [None],
        ["a"],
        [1],
        [1.0, 2.0],
        [[1.0, 2.0]],
        [[1], [2, 3]],
        [[[1.0]]],
    )
    yield from ((2, -2), (1, 2, 3, 4), {"gain": 1}, {3: "a"}, {"a": None}, range(2), slice(None), iter([1]))
    yield from (np.array("a"), np.array(None), np.array([object()]), np.array([1j]), np.array([True]))
    yield from (np.ma.masked_array([1], mask=[True]), np.ma.masked_array([1.0], mask=[True]), np.array([]))
    yield from (
        rng.normal(size=size),
        rng.integers(-3, 3, size=size),
        jnp.zeros(size),
        jnp.full(size, jnp.nan),
    )
    yield from (
        np.datetime64("2020-01-01"),
        np.random.default_rng(0),
        jax.random.key(1),
        jax.random.PRNGKey(1),
    )
    plant = plant_of(1.0)
    other = lg.LQG(0.5 * np.eye(3), np.eye(3)[:, :2], np.eye(3))
    batch = lg.stack([plant, plant])
    yield from (plant, other, batch, [plant, other], [plant, None], lg.Finite([other, other]))
    yield from (lg.policies.Zero(num_inputs=2, num_outputs=3), lg.policies.StationaryLQG(plant))


@contextlib.contextmanager
def at_most(seconds):
    """Raises inside of a call that takes longer."""

    def stop(*_):
        raise HangError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(function, args, kwargs):
    """What came of a call: "accepted", "refused", "signature", or the error that should not have been."""
    try:
        with at_most(PATIENCE), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*args, **kwargs)
    except lg.LqgapError as error:
        return "refused" if str(error) else "LqgapError without a word"
    except HangError:
        return "hangs"
    except Exception as error:
        if type(error) is TypeError and ("no_such_argument" in kwargs or not fits(function, args, kwargs)):
            return "signature"
        return f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
    return "accepted"


def fits(function, args, kwargs):
    """Whether the number and the names of arguments are those of the function."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def damage(rng, call):
    """One argument of a call replaced by a bad value, or at times left out or of a name that there is not."""
    args, kwargs = list(call.args), dict(call.kwargs)
    optional = [
        parameter.name
        for parameter in inspect.signature(call.function).parameters.values()
        if parameter.kind == parameter.KEYWORD_ONLY or parameter.default is not parameter.empty
    ][len(args) :]
    places = [*range(len(args)), *dict.fromkeys([*kwargs, *optional])]
    place = places[rng.integers(len(places))] if places else "nothing"
    chance = rng.random()
    if chance < 0.02:
        return args, kwargs | {"no_such_argument": 1}, "no_such_argument"
    if chance < 0.04 and args:
        return args[:-1], kwargs, "left out"
    values = list(bad_values(rng))
    value = values[rng.integers(len(values))]
    if isinstance(place, str):
        return args, kwargs | {place: value}, f"{place}={value!r:.60}"
    args[place] = value
    return args, kwargs, f"{place}: {value!r:.60}"


def campaign(folder, num_calls, seed=0):
    """What comes of so many calls, each valid but for one argument; all names in turn."""
    rng, found = np.random.default_rng(seed), {}
    table = list(calls(folder).items())
    for number in range(num_calls):
        name, call = table[number % len(table)]
        args, kwargs, what = damage(rng, call)
        found[number, name, what] = outcome(call.function, args, kwargs)
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_refused_by_errors_of_the_library(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the paths among the values lie
    with jax.numpy_rank_promotion("allow"):
        found = campaign(tmp_path, NUM_CALLS)
    bad = {key: kind for key, kind in found.items() if kind not in {"accepted", "refused", "signature"}}
    kinds = collections.Counter(kind.partition(":")[0] for kind in found.values())
    assert not bad, f"{dict(kinds)}\n" + "\n".join(
        f"{name}({what}): {kind}" for (_, name, what), kind in bad.items()
    )
