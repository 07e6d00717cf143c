"""What methods are made for in these tests: four springs."""

import jax
import pytest

import lqgap as lg
from lqgap.experiments.methods.base import Setting


@pytest.fixture(scope="session")
def members():
    return lg.plants.mass_spring_damper().grid(2)


@pytest.fixture
def setting(members, tmp_path):
    """The setting, with changes."""

    def make(**changes):
        usual = dict(
            family=lg.plants.mass_spring_damper(),
            members=members,
            horizon=6,
            ends=False,
            key=jax.random.key(0),
            checkpoints=tmp_path,
        )
        return Setting(**(usual | changes))

    return make
