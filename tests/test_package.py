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
