import subprocess
import sys

import numpy as np
import pytest

from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.base import Knowing
from lqgap.policies import FiniteHorizonLQG, StationaryLQG


def test_every_method_is_described_and_has_options_by_default():
    labels = [method.label for method in METHODS.values()]
    assert len(set(labels)) == len(labels)
    for name, method in METHODS.items():
        assert method.about.endswith("."), name
        assert method().model_dump().keys() == method.model_fields.keys()


def test_methods_of_a_study_that_names_none_are_the_usual_eight():
    usual = [name for name, method in METHODS.items() if method.is_default]
    assert usual == ["nominal", "linear", "bank", "randomized", "robust", "identify", "vtr", "oracle"]


@pytest.mark.parametrize(
    "name", ["nominal", "bank", "map", "hysteresis", "certainty", "thompson", "identify"]
)
def test_policies_go_on_unless_the_task_ends(setting, name):
    method = METHODS[name]()
    assert method.make(setting()).policy.horizon is None
    assert method.make(setting(ends=True)).policy.horizon == (None if name == "nominal" else 6)


def test_a_setting_plans_for_tasks_that_end(setting):
    assert setting().planned is None
    assert setting(ends=True).planned == 6


def test_who_knows_the_plant_acts_by_its_optimum(members):
    plant = members[1]
    goes_on, ends = Knowing(None).on(plant), Knowing(6).on(plant)
    assert isinstance(goes_on, StationaryLQG)
    assert isinstance(ends, FiniteHorizonLQG)
    np.testing.assert_array_equal(goes_on.A, plant.A)
    assert ends.horizon == 6


REGISTER = """
import sys
from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.base import AbstractMethod, Made

class Damped(AbstractMethod):
    label, kind, about = "Damped", "adaptive", "Half of what the bank does."
    share: float = 0.5

    def make(self, setting):
        from lqgap.policies import ModelBank
        return Made(ModelBank(setting.members.systems, horizon=setting.planned))

METHODS["damped"] = Damped
"""
READ = """
import tomllib
from lqgap.experiments.parsing import default_study, example_text, parse_study
from lqgap.experiments.study import schema

assert default_study()[0].methods.chosen["damped"] == Damped()
assert tomllib.loads(example_text())["methods"]["damped"] == {"share": 0.5}
assert "Damped" in schema()["$defs"]
study, source = parse_study(sys.argv[1], name="study", folder=None)
assert study.methods.chosen == {"bank": METHODS["bank"](), "damped": Damped(share=0.25)}
assert "jax" not in sys.modules
"""
RUN = """
import pathlib
import lqgap
from lqgap.cli.main import app
from lqgap.experiments.sweep import Task, measure
from lqgap.experiments.transfer import transfer
from lqgap.report import write

lqgap.enable_x64()
folder = pathlib.Path(sys.argv[2])
record = transfer(study, source, folder)
assert record.method("damped").label == "Damped"
(account,) = record.adaptations
assert (account.method, account.set_size, account.model) == ("damped", None, None)
(page,) = write(record, folder)
assert "Damped on real 1" in page.read_text()
rows, _ = measure(Task(study.model_dump(exclude_none=True), "", "study", False, str(folder)))  # of a sweep
assert rows["damped"]["worst_real"] == rows["bank"]["worst_real"]
(folder / "study.toml").write_text(sys.argv[1])
app(["adapt", str(folder / "study.toml"), "--method", "damped"])
"""
TINY = """
horizon = 3
[plant]
family = "unknown_sign"
[methods]
bank = {}
damped = {share = 0.25}
[real]
count = 1
[evaluation]
rollouts = 4
horizons = []
trajectories = 1
bounds = false
"""


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-c", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_a_method_that_is_registered_is_read_shown_and_documented_without_jax():
    done = run(REGISTER + READ, TINY)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_method_that_is_registered_is_judged_swept_reported_and_run_without_any_other_change(tmp_path):
    done = run(REGISTER + READ + RUN, TINY, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "At the end of Damped on real 1" in " ".join(done.stdout.split())
