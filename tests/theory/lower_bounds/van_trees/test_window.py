import numpy as np
import pytest
from exact_paths import response
from van_trees_cases import small_case, undisturbed
from varied_plants import SIZES


@pytest.mark.parametrize("size", SIZES)
def test_the_information_is_the_second_moment_of_the_score(size):
    case, solved = small_case(size), undisturbed(size)
    x, gamma = solved.paths.x, np.asarray(case.system.gamma)
    score, moments = np.zeros((len(x), gamma.shape[1])), []
    for t in range(x.shape[1]):
        moments.append(np.einsum("n,nk,nl->kl", solved.weight, score, score))
        score = score + solved.paths.nu0[t] * x[:, [t]] + gamma[t] * (x[:, [t]] ** 2 - 1)
    for h, j, t in case.places:
        spread = np.einsum("n,nk,nl->kl", solved.weight, solved.paths.nu0[t], solved.paths.nu0[t])
        np.testing.assert_allclose(case.window.information[h, j], moments[t], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(case.window.spread[h, j], spread, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_responses_are_products_of_transitions_inside_of_the_window_and_nothing_else(size):
    """Places before the record, and pairs in the wrong order, are zero."""
    case, solved = small_case(size), undisturbed(size)
    system, p = case.system, size[1]
    G, E = np.asarray(system.G), np.asarray(system.E)
    expected = {
        name: np.zeros(getattr(case.window, name).shape) for name in ("R", "g", "reach", "shared", "psi")
    }
    for h, j, late in case.places:
        Y = np.asarray(system.Y[h])
        for t in range(case.instants(h)[0] - 1, late, -1):
            Y = Y @ np.asarray(system.F[t])
        at_last = late == case.instants(h)[0]
        expected["psi"][h, j] = system.y[h] if at_last else Y @ G[late]
        for place, early in list(enumerate(case.instants(h)))[j + 1 :]:
            R = response(system, late, early)
            expected["R"][h, j, place] = R
            expected["g"][h, j, place] = response(system, late, early + 1) @ G[early]
            covariance = np.einsum(
                "n,nx,ny->xy", solved.weight, solved.paths.zeta0[early], solved.paths.zeta0[early]
            )
            expected["shared"][h, j, place] = np.asarray(system.N[early]) @ covariance @ R.T
            if (early + 1) % p == 0:
                expected["reach"][h, j, place] = response(system, late, early + 1) @ E[early // p]
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(case.window, name), value, rtol=1e-9, atol=1e-12, err_msg=name)
