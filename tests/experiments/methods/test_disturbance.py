from lqgap.experiments.methods.disturbance import Disturbance


def test_numbers_of_the_study_are_those_of_the_learner(setting):
    learner = Disturbance(memory=4, update="gradient").make(setting(horizon=99_999)).policy
    assert (learner.response.memory, learner.response.update, learner.first_fit) == (4, "gradient", 2155)
