"""Training in a process of its own: killed without warning."""

import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

SCRIPT = """
import pathlib, sys, time
import jax, numpy as np
import lqgap as lg
from lqgap.policies import ModelBank
from lqgap.training import Monitor, TrainingOptions

lg.enable_x64()
where, pause = pathlib.Path(sys.argv[1]), float(sys.argv[2])
pair = lg.simulators.Finite([lg.LQG([[0.9]], [[b]], [[1.0]]) for b in (1.0, -0.7)])
options = TrainingOptions(steps=30, validate_every=5, validation_rollouts=64, receipt_rollouts=64, polish=15)
monitor = Monitor(callback=lambda record: time.sleep(pause), folder=where / "checkpoint")
bank = ModelBank(pair.systems, horizon=12)
result = lg.train_robust(bank, pair, horizon=12, key=jax.random.key(0), options=options, monitor=monitor)
leaves = [np.ravel(leaf) for leaf in jax.tree.leaves(result.policy)]
np.save(where / "policy.npy", np.concatenate([*leaves, result.weights, result.gaps.mean]))
"""


def start(where: pathlib.Path, *, pause: float = 0.0) -> subprocess.Popen:
    where.mkdir(exist_ok=True)
    command = [sys.executable, "-c", SCRIPT, str(where), str(pause)]
    return subprocess.Popen(command)


def finish(where: pathlib.Path) -> np.ndarray:
    assert start(where).wait(timeout=200) == 0
    return np.load(where / "policy.npy")


@pytest.mark.slow
def test_a_training_killed_in_either_stage_ends_as_if_nothing_had_happened(tmp_path):
    whole = finish(tmp_path / "whole")
    cut = tmp_path / "cut"
    for stage in ("1", "2"):
        process = start(cut, pause=0.5)
        deadline = time.monotonic() + 200
        while not (cut / "checkpoint" / f"{stage}.safetensors").exists():
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.7)  # one more validation or so
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not (cut / "policy.npy").exists()
    np.testing.assert_array_equal(finish(cut), whole)
