import pytest

import lqgap as lg
from lqgap.cli.train import run_train
from lqgap.policies import ModelBank

OPTIONS = dict(seed=None, trust=False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Robust training. training ended where it began")  # after two steps
def test_the_policy_of_a_method_is_saved(study, tmp_path):
    run_train(study, tmp_path / "robust.safetensors", method="robust", **OPTIONS)
    assert isinstance(lg.load_policy(tmp_path / "robust.safetensors"), ModelBank)


def test_a_method_that_is_not_there_is_named(study, tmp_path):
    with pytest.raises(lg.InvalidArgumentError, match="no method 'qqq'; there are nominal, linear, "):
        run_train(study, tmp_path / "p", method="qqq", **OPTIONS)


def test_what_knows_the_plant_cannot_be_saved(study, tmp_path):
    with pytest.raises(lg.InvalidArgumentError, match="'oracle' knows the plant: there is no policy"):
        run_train(study, tmp_path / "p", method="oracle", **OPTIONS)


def test_a_place_that_cannot_be_written_is_refused_before_any_work(study, tmp_path):
    for place in (tmp_path, study / "policy"):
        with pytest.raises(lg.InvalidArgumentError, match=r"is a folder|cannot be used"):
            run_train(study, place, method="bank", **OPTIONS)
