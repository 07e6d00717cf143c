import numpy as np
import scipy.stats

from lqgap.adaptive import UnknownPlant
from lqgap.adaptive.identified.optimism import Optimism


def test_the_radius_counts_the_directions_that_are_no_coordinates():
    told = UnknownPlant(order=4, Q=np.eye(2), R=np.eye(2))
    beta = Optimism(told, confidence=0.95).beta
    np.testing.assert_allclose(beta, scipy.stats.chi2.ppf(0.95, [6, 12, 18, 24]), rtol=1e-12)
    np.testing.assert_allclose(beta[-1], 36.4, atol=0.05)
