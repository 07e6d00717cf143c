import numpy as np
import scipy.stats

from lqgap.experiments.methods.lqg_opt import Optimistic


def test_the_radius_is_the_quantile_of_the_confidence(setting):
    learner = Optimistic(confidence=0.9).make(setting()).policy
    np.testing.assert_allclose(learner.optimism.beta, scipy.stats.chi2.ppf(0.9, [3, 6]), rtol=1e-12)
