import numpy as np
from springs import FAMILY

from lqgap.simulators.audit.contraction import find_contraction


def weighted(Z, weight):
    """|| G' Z G'^-1 || with weight = G G': equal to that of the symmetric root."""
    G = np.linalg.cholesky(weight)
    return np.linalg.norm(G.T @ Z @ np.linalg.inv(G.T), 2)


def closed_loops(points):
    members = FAMILY.grid(points)
    return np.asarray(members.systems.A - members.systems.B @ members.optima().K)


def test_a_common_norm_contracts_what_the_plain_norm_does_not():
    loops = closed_loops(5)
    found = find_contraction(loops)
    norms = [weighted(Z, found.weight) for Z in loops]
    assert max(np.linalg.norm(Z, 2) for Z in loops) > 2
    np.testing.assert_allclose(found.gamma, max(norms), rtol=1e-6)
    assert found.member == int(np.argmax(norms))
    # 0.8708 is what one inequality over all 25 members gives; bisection is exact to 2e-3 (1 - gamma).
    assert 0.868 < found.gamma < 0.8715
    np.testing.assert_allclose(found.condition, np.linalg.cond(found.weight), rtol=1e-9)


def test_a_few_active_members_prove_it_for_all():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(3, 3))
    base *= 0.8 / np.max(np.abs(np.linalg.eigvals(base)))
    loops = base + 0.02 * rng.normal(size=(400, 3, 3))
    found = find_contraction(loops)
    assert found.holds
    assert max(weighted(Z, found.weight) for Z in loops) < 1


def test_products_that_grow_have_no_common_norm():
    """Each matrix is nilpotent, but their product has radius 4."""
    loops = np.array([[[0.0, 2.0], [0.0, 0.0]], [[0.0, 0.0], [2.0, 0.0]]])
    assert not find_contraction(loops).holds


def test_an_unstable_loop_has_none():
    assert not find_contraction(np.array([[[1.01]]])).holds


def test_one_loop_contracts_at_nearly_its_radius():
    loop = np.array([[[0.5, 3.0], [0.0, 0.4]]])
    assert 0.5 <= find_contraction(loop).gamma < 0.503


def test_units_do_not_decide_whether_a_norm_is_found():
    Z = np.array([[0.5, 0.4], [-0.3, 0.6]])
    T = np.diag([1.0, 1e5])
    found = find_contraction((T @ Z @ np.linalg.inv(T))[None])
    assert found.gamma < np.max(np.abs(np.linalg.eigvals(Z))) + 0.01
