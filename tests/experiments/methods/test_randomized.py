from lqgap.experiments.methods.randomized import Randomized
from lqgap.training import train_randomized


def test_domain_randomisation_is_against_all_members():
    assert Randomized().train_fn() is train_randomized
