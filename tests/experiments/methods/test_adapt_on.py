from lqgap.experiments.methods.adapt_on import Adapting


def test_numbers_of_the_study_are_those_of_the_learner(setting):
    learner = Adapting(memory=4, update="gradient", window=9).make(setting()).policy
    assert (learner.response.memory, learner.response.update, learner.first_fit) == (4, "gradient", 4 * 18)
