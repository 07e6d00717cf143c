import numpy as np

from lqgap.theory.certificates.ascent import Local, climb, ellipsoid_step


def quadratic(centre, information, pull):
    """l = -1/2 ||z - centre||^2 in the metric of the information, and a linear gap."""

    def local(z, _):
        off = z - centre
        count = len(z)
        return Local(
            log_likelihood=-0.5 * np.einsum("ki,ij,kj->k", off, information, off),
            gap=1 + z @ pull,
            slope=-off @ information,
            gap_slope=np.tile(pull, (count, 1)),
            information=np.tile(information, (count, 1, 1)),
        )

    return local


CENTRE, PULL = np.array([0.4, 0.6]), np.array([1.0, -2.0])
INFORMATION = np.array([[300.0, 100.0], [100.0, 200.0]])
NO_PUSH = np.zeros((1, 2))


def test_one_step_leads_to_the_farthest_point_of_an_ellipsoid():
    local = quadratic(CENTRE, INFORMATION, PULL)
    z = np.array([[0.45, 0.55]])
    step = ellipsoid_step(z, local(z, None), local(z, None).gap_slope, np.array([-2.0]))
    along = np.linalg.solve(INFORMATION, PULL)
    expected = CENTRE + 2 * along / np.sqrt(PULL @ along)  # radius^2 = 2 * 2
    np.testing.assert_allclose(z + step, expected[None], rtol=1e-6)


def test_climbing_from_afar_reaches_the_maximum_and_stays_unrefuted():
    local = quadratic(CENTRE, INFORMATION, PULL)
    best, where = climb(local, np.array([[0.95, 0.05]]), NO_PUSH, least=np.array([-2.0]))
    along = np.linalg.solve(INFORMATION, PULL)
    expected = 1 + PULL @ CENTRE + 2 * np.sqrt(PULL @ along)
    np.testing.assert_allclose(best, expected, rtol=1e-4)
    assert best[0] <= expected * (1 + 1e-9)
    assert local(where, None).log_likelihood[0] >= -2.0


def test_the_box_is_respected():
    local = quadratic(np.array([0.98, 0.5]), 50 * np.eye(2), np.array([3.0, 1.0]))
    best, where = climb(local, np.array([[0.5, 0.5]]), NO_PUSH, least=np.array([-1.0]))
    # Held at the side z_1 = 1, what is left of the radius^2 of 2 goes along z_2.
    expected = np.array([1.0, 0.5 + np.sqrt((2 - 50 * 0.02**2) / 50)])
    np.testing.assert_allclose(where[0], expected, rtol=1e-3)
    np.testing.assert_allclose(best[0], 1 + expected @ [3.0, 1.0], rtol=1e-3)


def test_a_push_finds_the_maximum_on_the_other_side():
    """A gap that grows to both sides, more to the left; the slope at the start leads to the right."""

    def local(z, _):
        off = z - 0.5
        gap = (off[:, 0] - 0.05) ** 2 * np.where(off[:, 0] < 0.05, 1.5, 1.0)
        gap_slope = 2 * (off - 0.05) * np.where(off < 0.05, 1.5, 1.0)
        information = np.full((len(z), 1, 1), 100.0)
        return Local(-50 * off[:, 0] ** 2, gap, -100 * off, gap_slope, information)

    starts, pushes = np.full((2, 1), 0.6), np.array([[0.0], [-1.0]])
    best, where = climb(local, starts, pushes, least=np.full(2, -2.0))
    np.testing.assert_allclose(where[:, 0], [0.7, 0.3], atol=1e-3)
    assert best[1] > best[0]


def test_where_all_is_refuted_nothing_is_found():
    local = quadratic(CENTRE, INFORMATION, PULL)
    best, _ = climb(local, np.array([[0.5, 0.5]]), NO_PUSH, least=np.array([1.0]))
    assert best[0] == -np.inf
