import lqgap as lg
from lqgap.experiments.methods.identified import Identified
from lqgap.policies import Zero


def test_a_stable_class_tells_sizes_and_the_cost_alone(setting, members):
    told = Identified(excitation=0.5).told(setting())
    assert isinstance(told.stabilizer, Zero)
    assert (told.Q.tolist(), told.R.tolist()) == (
        members.systems.Q[0].tolist(),
        members.systems.R[0].tolist(),
    )
    assert float(told.probe[0, 0]) == 0.5 / float(members.systems.R[0, 0, 0]) ** 0.5
    assert Identified(runs=20).num_rollouts(256) == 20


def test_a_class_that_is_not_stable_comes_with_a_stabiliser(setting):
    family = lg.plants.double_integrator()
    told = Identified().told(setting(family=family, members=family.grid(2)))
    assert not isinstance(told.stabilizer, Zero)
