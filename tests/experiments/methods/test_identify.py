from lqgap.experiments.methods.identify import Identify
from lqgap.policies import Committed, RandomProbe


def test_identification_probes_and_commits(setting):
    policy = Identify(probe=3, scale=1.5).make(setting()).policy
    assert isinstance(policy, RandomProbe)
    assert isinstance(policy.then, Committed)
    assert (policy.steps, policy.then.steps, float(policy.scale)) == (3, 3, 1.5)
