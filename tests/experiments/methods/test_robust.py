from lqgap.experiments.methods.robust import Robust
from lqgap.training import train_robust


def test_robust_training_is_against_the_worst_member():
    assert Robust().train_fn() is train_robust
