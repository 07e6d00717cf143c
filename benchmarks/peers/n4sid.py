"""Our weighted realisation against N4SID of nfoursid: `python -m benchmarks.peers.n4sid --peer PYTHON`.

PYTHON is an interpreter with nfoursid (`python -m venv peer; peer/bin/pip install nfoursid`); without one,
that which runs this. Records and models are handed over as .npz files without pickles.

Both see the same records and are told the order. The peer does not choose its number of block rows, so it
runs with several and is judged by the best of them, which a user could not know; ours chooses its lags from
each record. The peer also estimates a feedthrough from u to y that is not there, and cannot leave it out.
Errors are of the predictor's Markov parameters C Abar^k F (of outputs, which hold the Kalman gain) and
C Abar^k B (of inputs), relative, root mean square over the records.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import jax.numpy as jnp
import numpy as np
import scipy.linalg

import lqgap
from benchmarks.timing import table
from lqgap.identification import (
    MarkovParameters,
    Realization,
    estimate_markov,
    exact_markov,
    probing_for_gains,
    realize,
)
from lqgap.systems import LQG

NUM_STEPS = 2000
NUM_RECORDS = 16
NUM_PARAMETERS = 20
BLOCK_ROWS = (3, 5, 8, 12)
GAIN_ERROR = 0.05
WANTED = 1.3

PEER = """
import sys, warnings
import numpy as np, pandas as pd
from nfoursid.nfoursid import NFourSID
warnings.simplefilter("ignore")
source, target, order, *block_rows = sys.argv[1:]
data = np.load(source, allow_pickle=False)
found = {}
for rows in map(int, block_rows):
    for index, (y, u) in enumerate(zip(data["y"], data["u"])):
        names = [f"y{i}" for i in range(y.shape[1])], [f"u{i}" for i in range(u.shape[1])]
        frame = pd.DataFrame(np.hstack([y, u]), columns=names[0] + names[1])
        method = NFourSID(frame, output_columns=names[0], input_columns=names[1], num_block_rows=rows)
        method.subspace_identification()
        model, covariance = method.system_identification(rank=int(order))
        found |= {f"{name}_{rows}_{index}": getattr(model, name) for name in "abc"}
        found[f"covariance_{rows}_{index}"] = covariance
np.savez(target, **found)
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", default=sys.executable, help="interpreter with nfoursid")
    lqgap.enable_x64()
    print(run(parser.parse_args().peer))


def run(peer: str) -> str:
    """The table of all plants."""
    rows = [_measure(name, plant, sigma_u, peer) for name, (plant, sigma_u) in _plants().items()]
    return table(
        "Identification against nfoursid",
        f"{NUM_RECORDS} records of {NUM_STEPS} steps: errors of {NUM_PARAMETERS} Markov parameters of the "
        f"predictor; the peer at the best of {', '.join(map(str, BLOCK_ROWS))} block rows for each column.",
        [
            "plant",
            "probing",
            "outputs: N4SID",
            "ours",
            "ratio",
            "plain",
            "inputs: N4SID",
            "ours",
            "ratio",
            "plain",
            "wanted",
        ],
        rows,
    )


def _plants() -> dict[str, tuple[LQG, float]]:
    """Nominal plants, and inputs that would tell each gain to GAIN_ERROR if all else were known."""
    families = {
        "two_mass_spring": lqgap.plants.two_mass_spring(),
        "boeing_747": lqgap.plants.boeing_747(),
        "boeing_747, two outputs": lqgap.plants.boeing_747(measured="speed_and_attitude"),
        "web_server": lqgap.plants.web_server(),
    }
    return {
        name: (family.nominal(), probing_for_gains(family.grid(2), num_steps=NUM_STEPS, error=GAIN_ERROR))
        for name, family in families.items()
    }


def _measure(name: str, plant: LQG, sigma_u: float, peer: str) -> list[str]:
    exact = exact_markov(lqgap.solve(plant), plant, length=NUM_PARAMETERS)
    records = [_record(plant, sigma_u, seed) for seed in range(NUM_RECORDS)]
    theirs = _peer_models(records, plant.num_states, peer)
    errors = {rows: _errors(models, exact) for rows, models in theirs.items()}
    best = np.min(list(errors.values()), axis=0)
    estimates = [estimate_markov(y, u) for y, u in records]
    ours, plain = (
        _errors(
            [realize(estimate, order=plant.num_states, weighting=weighting) for estimate in estimates], exact
        )
        for weighting in ("canonical", "plain")
    )
    cells = [name, f"{sigma_u:.3g}"]
    for column in range(2):
        ratio = ours[column] / best[column]
        cells += [
            f"{best[column]:.4f}",
            f"{ours[column]:.4f}",
            f"{ratio:.2f}",
            f"{plain[column] / best[column]:.2f}",
        ]
    assert ours[0] <= WANTED * best[0], f"{name}: {ours[0] / best[0]:.2f} times the peer's error"
    return [*cells, f"{WANTED}"]


def _errors(models: list[Realization], exact: MarkovParameters) -> np.ndarray:
    """Root mean squares, relative: of C Abar^k F, of C Abar^k B."""
    squares = []
    for model in models:
        found = model.markov(length=NUM_PARAMETERS)
        squares.append(
            [
                float(jnp.sum((one - other) ** 2) / jnp.sum(other**2))
                for one, other in ((found.of_outputs, exact.of_outputs), (found.of_inputs, exact.of_inputs))
            ]
        )
    return np.sqrt(np.mean(squares, axis=0))


def _record(plant: LQG, sigma_u: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A, B, C = (np.asarray(X) for X in (plant.A, plant.B, plant.C))
    x, y = np.zeros(len(A)), np.zeros((NUM_STEPS, len(C)))
    u = sigma_u * rng.normal(size=(NUM_STEPS, B.shape[1]))
    w, z = rng.normal(size=(NUM_STEPS, len(A))), rng.normal(size=y.shape)  # all four plants have unit noise
    for t in range(NUM_STEPS):
        y[t] = C @ x + z[t]
        x = A @ x + B @ u[t] + w[t]
    return y, u


def _peer_models(
    records: list[tuple[np.ndarray, np.ndarray]], order: int, peer: str
) -> dict[int, list[Realization]]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder) / "records.npz", pathlib.Path(folder) / "models.npz"
        np.savez(source, y=np.array([y for y, _ in records]), u=np.array([u for _, u in records]))
        command = [peer, "-c", PEER, str(source), str(target), str(order), *map(str, BLOCK_ROWS)]
        subprocess.run(command, check=True)  # noqa: S603
        with np.load(target, allow_pickle=False) as found:
            return {
                rows: [_as_realization(found, f"{rows}_{index}") for index in range(len(records))]
                for rows in BLOCK_ROWS
            }


def _as_realization(found: np.lib.npyio.NpzFile, label: str) -> Realization:
    """With the gain of the peer's noise covariances [V, X'; X, W], by a Riccati equation with cross term."""
    A, B, C, covariance = (found[f"{name}_{label}"] for name in ("a", "b", "c", "covariance"))
    p = len(C)
    V, X, W = covariance[:p, :p], covariance[p:, :p], covariance[p:, p:]
    Sigma = scipy.linalg.solve_discrete_are(A.T, C.T, W, V, s=X)
    S = C @ Sigma @ C.T + V
    F = np.linalg.solve(S, (A @ Sigma @ C.T + X).T).T
    return Realization(*(jnp.asarray(matrix) for matrix in (A, B, C, F, S)))


if __name__ == "__main__":
    main()
