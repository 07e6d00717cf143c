import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant

import lqgap
from lqgap.linalg import certify_by_lyapunov, certify_by_weight, spectral_norm, spectral_radius
from lqgap.systems import filter_matrix, predictor_matrix


def require_decay(X, certificate):
    kappa, gamma = float(certificate.kappa), float(certificate.gamma)
    assert 0 < gamma <= 1
    assert kappa >= 1 - 1e-12
    for k in range(30):
        power = np.linalg.norm(np.linalg.matrix_power(np.asarray(X), k), 2)
        assert power <= kappa * (1 - gamma) ** k * (1 + 1e-9)


def test_the_prediction_covariance_certifies_the_predictor(seed):
    plant = random_plant(seed)
    optimum = lqgap.solve(plant)
    Abar = predictor_matrix(optimum, plant)
    certificate = certify_by_weight(Abar, optimum.Sigma)
    require_decay(Abar, certificate)
    root = np.linalg.inv(np.linalg.cholesky(optimum.Sigma))
    smallest = np.linalg.eigvalsh(root @ plant.W @ root.T)[0]
    assert 1 - certificate.gamma <= np.sqrt(1 - smallest) + 1e-12
    np.testing.assert_allclose(certificate.kappa, np.sqrt(np.linalg.cond(optimum.Sigma)), rtol=1e-9)


def test_the_filtered_covariance_certifies_the_filter(seed):
    plant = random_plant(seed)
    optimum = lqgap.solve(plant)
    calA = filter_matrix(optimum, plant)
    require_decay(calA, certify_by_weight(calA, optimum.Sigma_filtered))


@pytest.mark.parametrize("X", [[[0.5, 9.0], [0.0, 0.5]], [[0.0, 7.0], [0.0, 0.0]], [[0.99]]])
def test_lyapunov_certifies_every_stable_matrix(X):
    require_decay(X, certify_by_lyapunov(jnp.asarray(X)))


def test_lyapunov_certifies_a_predictor_with_noise_free_delay_states():
    plant = lqgap.systems.delay_input(random_plant(0), 2)
    Abar = predictor_matrix(lqgap.solve(plant), plant)
    require_decay(Abar, certify_by_lyapunov(Abar))


def test_an_unstable_matrix_gets_no_certificate():
    assert not certify_by_lyapunov(1.1 * jnp.eye(2)).gamma > 0


def test_spectral_radius_of_a_rotation_and_of_a_nilpotent_matrix():
    rotation = jnp.asarray([[0.0, -0.7], [0.7, 0.0]])
    np.testing.assert_allclose(spectral_radius(rotation), 0.7, rtol=1e-14)
    np.testing.assert_allclose(spectral_radius(jnp.asarray([[0.0, 3.0], [0.0, 0.0]])), 0, atol=1e-14)


@pytest.mark.parametrize("value", [0.0, 1.0, np.nan, np.inf])
def test_the_spectral_norm_is_that_of_numpy_where_it_is_finite(value):
    X = np.diag([3.0, 4.0, 0.5])[:2]
    X[1, 2] = value
    expected = np.linalg.norm(X, 2) if np.isfinite(value) else np.nan
    np.testing.assert_allclose(spectral_norm(jnp.asarray(X)), expected, rtol=1e-12)


SINGULAR = """
import jax, jax.numpy as jnp, lqgap
lqgap.enable_x64()
from lqgap.linalg import certify_by_lyapunov, certify_by_weight
print(certify_by_weight(0.5 * jnp.eye(3), jnp.eye(3) - 0.4).gamma)
print(certify_by_lyapunov(jnp.diag(jnp.asarray([0.5, 1.0, 2.0]))).gamma)
"""


def test_where_there_is_no_certificate_lapack_prints_nothing():
    """In a process of its own: Fortran keeps what it prints until the end."""
    done = subprocess.run(
        [sys.executable, "-c", SINGULAR], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["nan", "nan"]
