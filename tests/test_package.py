import hashlib
import importlib.metadata
import pathlib
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
    with pytest.raises(AttributeError, match="attribute sovle"):
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


def test_types_are_offered_to_the_users_of_the_package():
    assert (pathlib.Path(lqgap.__file__).parent / "py.typed").exists()


def test_what_is_bundled_is_what_was_released_and_its_licence_is_named():
    folder = pathlib.Path(lqgap.__file__).parent / "report"
    # plotly.js-basic-dist-min 4.1.1, as its package has it.
    expected = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
    assert hashlib.sha256((folder / "plotly-basic.min.js").read_bytes()).hexdigest() == expected
    metadata = importlib.metadata.metadata("lqgap")
    assert metadata["License-Expression"] == "Apache-2.0 AND MIT"
    assert "Plotly" in (folder / "plotly-LICENSE").read_text()


def test_a_study_loads_no_plotting_library_no_gymnasium_and_no_solver_before_it_needs_them():
    heavy = "{'gymnasium', 'scipy.signal', 'matplotlib', 'cvxpy'}"
    assert run(f"import sys, lqgap.experiments.units; print({heavy} & set(sys.modules))").stdout == "set()\n"


def test_every_name_of_interop_can_be_loaded():
    for name in lqgap.interop.__all__:
        assert getattr(lqgap.interop, name) is not None
    with pytest.raises(AttributeError, match="attribute from_matlab"):
        _ = lqgap.interop.from_matlab
