"""Settings and fixtures of all tests."""

import pathlib

import hypothesis
import jax
import jaxtyping
import pytest
from golden import GOLDEN

import lqgap

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_disable_most_optimizations", True)  # tests compile much and compute little
# Workers share what they compile, and so do runs.
jax.config.update("jax_compilation_cache_dir", str(pathlib.Path(__file__).parent.parent / ".jax_cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(params=[0, 1, 2])
def seed(request):
    """A test that asks for it runs once for each of a few fixed seeds."""
    return request.param


@pytest.fixture(params=sorted(GOLDEN["systems"]))
def golden(request):
    """One of the golden systems, as plain data."""
    return GOLDEN["systems"][request.param]


@pytest.fixture
def golden_plant(golden):
    """The same golden system as an LQG."""
    return lqgap.LQG(
        *(golden[name] for name in "ABC"),
        **{name: golden[name] for name in ("Q", "R", "W", "V", "S0")},
    )


@pytest.fixture
def as_users_run_it():
    """Switches off the shape checks that only tests have, to see the errors that users see."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True, scope="module")
def _few_memory_maps():
    """Forgets compiled programs before the kernel's limit (65530 maps a process), beyond which XLA crashes."""
    yield
    maps = pathlib.Path("/proc/self/maps")
    if maps.exists() and maps.read_text().count("\n") > 30_000:
        jax.clear_caches()
