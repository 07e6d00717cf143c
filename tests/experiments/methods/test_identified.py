from lqgap.experiments.methods.identified import Identified


def test_numbers_of_the_study_are_those_of_the_learner(setting):
    learner = Identified(probing=0.3, window=9).make(setting()).policy
    assert (float(learner.probing), learner.plant.window, learner.plant.order) == (0.3, 9, 2)
    assert learner.horizon is None
