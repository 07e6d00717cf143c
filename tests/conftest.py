"""Settings and fixtures of all tests."""

import collections
import contextlib
import ctypes
import gc
import os
import pathlib
import re
import shutil

import equinox as eqx
import hypothesis
import jax
import jaxtyping
import pytest
from golden import GOLDEN

import lqgap

MAX_CACHE = 2**29  # bytes: several times what a run of all tests writes
MAX_MEMORY = 4 * 2**28  # bytes of a process, after which it forgets compiled programs at the end of a file
MUCH_MEMORY = 5 * 2**28  # bytes, after which it does so at the end of a test
MAX_MAPS = 30_000  # the kernel allows 65530 memory maps a process, beyond which XLA crashes
# Files in tests/ that take longest, and those that would otherwise be collected last.
LONGEST = (
    "evaluation/test_exact",
    "policies/test_policy",
    "test_properties",
    "evaluation/test_gap",
    "adaptive/vtr/test_algorithm",
    "theory/lower_bounds/test_bound",
    "adaptive/test_run",
    "linalg/test_riccati",
    "interop/test_predict",
    "identification/test_fit",
    "theory/constants/test_transient",
    "theory/test_errata_analysis",
    "training/test_search",
    "training/test_stabilizer",
    "training/test_objective",
    "training/test_derivative",
    "training/test_engine",
)

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
# Tests compile much and compute little: the compiler's older emitters, in one piece, take a quarter of its time.
jax.config.update("jax_disable_most_optimizations", True)
FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
if FLAGS not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}"
for name in ("fast", "thorough"):
    hypothesis.settings.register_profile(name, derandomize=True, deadline=None, database=None)

PROGRAMS = collections.Counter()


def _count(event, **_):
    if event == "/jax/compilation_cache/cache_hits":
        PROGRAMS["read"] += 1


def _count_timed(event, _seconds, **_other):
    if event == "/jax/core/compile/backend_compile_duration":
        PROGRAMS["requested"] += 1


jax.monitoring.register_event_listener(_count)
jax.monitoring.register_event_duration_secs_listener(_count_timed)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Two workers, or none for a few tests: to start workers takes longer than to run those."""
    return 0 if config.option.keyword or any(".py" in argument for argument in config.args) else 2


def pytest_configure(config):
    """Workers share what they compile, and so do runs and checkouts; what has grown too large starts anew."""
    home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = pathlib.Path(os.environ.get("JAX_COMPILATION_CACHE_DIR") or home / "lqgap" / "tests")
    is_worker = hasattr(config, "workerinput")
    if not is_worker and sum(file.stat().st_size for file in folder.glob("*")) > MAX_CACHE:
        shutil.rmtree(folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    hypothesis.settings.load_profile("fast" if config.option.markexpr == "not slow" else "thorough")


def pytest_ignore_collect(collection_path, config):
    """With `-k test_of_that_name` only the files that have such a test are imported."""
    name = config.option.keyword.lower()
    if not re.fullmatch(r"test_\w+", name) or collection_path.suffix != ".py":
        return None
    is_there = name in collection_path.name.lower() or name in collection_path.read_text().lower()
    return None if is_there else True


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Test modules compute nothing while they are imported: whoever runs one test waits for that one only."""
    before = PROGRAMS["requested"]
    report = yield
    if report.passed and PROGRAMS["requested"] > before:
        report.outcome = "failed"
        report.longrepr = (
            f"{collector.nodeid} compiles programs while it is imported: make constants by functions"
        )
    return report


def pytest_collection_modifyitems(items):
    """Long files come first, so that no worker is left with one at the end."""
    places = {f"tests/{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Forgets compiled programs when they have become too many, preferably between files."""
    is_last = nextitem is None or nextitem.path != item.path
    process = pathlib.Path("/proc/self")
    if not process.exists():
        return
    memory = int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    has_many_maps = is_last and (process / "maps").read_text().count("\n") > MAX_MAPS
    if memory > (MAX_MEMORY if is_last else MUCH_MEMORY) or has_many_maps:
        eqx.clear_caches()
        jax.clear_caches()
        gc.collect()
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def pytest_sessionfinish(session):
    """Workers tell what they compiled."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["programs"] = dict(PROGRAMS)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """The sum over workers."""
    PROGRAMS.update(getattr(node, "workeroutput", {}).get("programs", {}))


def pytest_terminal_summary(terminalreporter):
    """Most of the time of a run goes into programs: their number is worth watching."""
    requested, read = PROGRAMS["requested"], PROGRAMS["read"]
    terminalreporter.write_line(f"programs: {requested} requested, {requested - read} compiled")


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
