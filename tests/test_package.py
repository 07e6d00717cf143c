import subprocess
import sys

import jax
import pytest

import lqgap


def run(code, *, env=None):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)


def test_every_public_name_can_be_loaded():
    for name in lqgap.__all__:
        assert getattr(lqgap, name) is not None
    assert set(dir(lqgap)) >= {"LQG", "solve"}
    assert set(lqgap._LAZY) < set(lqgap.__all__)


def test_an_unknown_name_raises_as_in_any_module():
    with pytest.raises(AttributeError, match="no attribute 'sovle'"):
        _ = lqgap.sovle


def test_import_and_help_do_not_load_jax():
    code = "import sys, lqgap, lqgap.cli.main; assert 'jax' not in sys.modules and 'numpy' not in sys.modules"
    run(code)


def test_precision_is_off_until_it_is_switched_on():
    code = (
        "import lqgap as lg\n"
        "try:\n    lg.LQG([[0.5]], [[1.0]], [[1.0]])\n"
        "except lg.PrecisionError:\n    lg.enable_x64()\n"
        "print(float(lg.solve(lg.LQG([[0.9]], [[1.0]], [[1.0]])).J))"
    )
    assert float(run(code).stdout) == pytest.approx(2.9128735930062413, rel=1e-12)


def test_tests_run_in_double_precision():
    assert jax.config.read("jax_enable_x64")


def test_a_study_loads_no_plotting_library_no_gymnasium_and_no_solver_before_it_needs_them():
    heavy = "{'gymnasium', 'scipy.signal', 'matplotlib', 'cvxpy'}"
    assert run(f"import sys, lqgap.experiments.units; print({heavy} & set(sys.modules))").stdout == "set()\n"


def test_every_name_of_interop_can_be_loaded():
    for name in lqgap.interop.__all__:
        assert getattr(lqgap.interop, name) is not None
    assert list(lqgap.interop._LAZY) == dir(lqgap.interop)
    with pytest.raises(AttributeError, match="no attribute 'from_matlab'"):
        _ = lqgap.interop.from_matlab
