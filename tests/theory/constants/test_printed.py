import math
from dataclasses import replace

import numpy as np
import pytest
from ten_models import GOLDEN, ten_models

from lqgap.simulators import check_assumptions
from lqgap.theory.constants.norms import printed_norms, uniform_norms
from lqgap.theory.constants.printed import printed_constants, printed_radius


@pytest.fixture(scope="module")
def norms():
    return printed_norms(uniform_norms(check_assumptions(ten_models()), certificate="predictor"))


@pytest.mark.parametrize("column", sorted(GOLDEN))
def test_the_printed_radius_of_the_reference_class_is_reproduced(column):
    known = GOLDEN[column]
    H = float(known["H"])
    found = printed_radius(known["D"], known["Delta"], horizon=H, log_count=math.log(10), delta=1 / H)
    np.testing.assert_allclose(found, known["beta_printed"], rtol=1e-9)


def test_the_chain_is_the_printed_one(norms):
    H = 1000.0
    found = printed_constants(norms, horizon=H, delta=0.1, C_w=2.0)
    g, slack = norms.gamma_1, 1 - norms.gamma_1
    np.testing.assert_allclose(found["N_P"], norms.N_U * (norms.N_S**2 + norms.N_K**2) / (2 * g - g**2))
    np.testing.assert_allclose(found["Kbar"], 9 * math.log(found["D"] * H) ** 2)
    np.testing.assert_allclose(found["T_w loop"], 36 * 2.0 * (norms.N_S * norms.N_K * norms.N_L / slack) ** 2)
    assert found["l"] == math.ceil(math.log(3 * H))
    ebar = (norms.N_S * norms.N_Sigma + 1) * math.sqrt(2 * math.log(H))
    Ybar = norms.N_S**2 * (found["Xbar_1"] + found["Ubar"]) + ebar + slack * found["Xbar_1"] / 4 / norms.N_L
    np.testing.assert_allclose(found["Ybar"], Ybar)
    assert found["T_w"] == max(value for name, value in found.items() if name.startswith("T_w "))


def test_the_largest_of_t_times_decay_is_found(norms):
    for gamma in (0.01, 0.3, 0.6, 0.9):
        changed = replace(norms, gamma_2=gamma)
        plain = 6 * (norms.kappa_2 / gamma) ** 2 * (1 + 2 * norms.N_L * norms.N_S + norms.N_S**2)
        D_y = 1 + norms.N_S + norms.N_S**2 * norms.N_K * norms.growth
        plain *= (norms.N_S + norms.N_S**2 * norms.N_L) * norms.N_K + norms.N_L * D_y
        C_1 = max(t * (1 - gamma) ** (t - 1) for t in range(1, 2000))
        found = printed_constants(changed, horizon=100.0, delta=0.1, C_w=1.0)
        np.testing.assert_allclose(found["T_w filter"], (plain * found["Kbar"] * C_1) ** 2, rtol=1e-9)


def test_without_contraction_there_are_none(norms):
    found = printed_constants(replace(norms, gamma_1=1.0), horizon=100.0, delta=0.1, C_w=1.0)
    assert found["D"] == math.inf
