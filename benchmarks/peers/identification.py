"""Our weighted realisation against nfoursid and SIPPY, on records of known plants and on measured ones.

All are told the order. The peers do not choose their horizon (block rows), so they run with several and are
judged by the best for each column, which a user could not know; ours chooses its lags from each record.
Errors are of the predictor's Markov parameters C Abar^k F (of outputs, which hold the Kalman gain) and
C Abar^k B (of inputs), relative, root mean square over the records; a feedthrough from u to y, which nfoursid
cannot leave out, does not count.

A measured record has no truth: all identify from its first part (of several records, the first), and
predict the rest. There a feedthrough is used, which may help: it sees the input of the very step.
"""

import csv
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.linalg

import lqgap as lg
from benchmarks.peers import peer
from lqgap.identification import estimate_markov, exact_markov, realize
from lqgap.simulators import Finite

NUM_PARAMETERS = 20
BLOCK_ROWS = (5, 8, 12)
FAMILIES = {
    "two_mass_spring": lg.plants.two_mass_spring,
    "boeing_747, two outputs": partial(lg.plants.boeing_747, measured="speed_and_attitude"),
    "web_server": lg.plants.web_server,
}
GAIN_ERROR = 0.05  # of each parameter's, if all else were known
AHEAD = (1, 10)

Record = tuple[np.ndarray, np.ndarray]  # y and u, rows are steps


Figures = np.ndarray  # the smaller the better


class Model(NamedTuple):
    """A predictor: x+ = A x + B u + F e, y = C x + D u + e."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    F: np.ndarray

    def markov(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """C Abar^k F and C Abar^k (B - F D)."""
        powers = [self.C]
        for _ in range(length - 1):
            powers.append(powers[-1] @ (self.A - self.F @ self.C))
        return np.array(powers) @ self.F, np.array(powers) @ (self.B - self.F @ self.D)

    def predictions(self, y: np.ndarray, u: np.ndarray, ahead: int) -> np.ndarray:
        """Of y_{t+ahead-1} from what was seen before t, inputs being known."""
        x, seen = np.zeros(len(self.A)), []
        for t in range(len(y) - ahead + 1):
            seen.append(x)
            x = self.A @ x + self.B @ u[t] + self.F @ (y[t] - self.C @ x - self.D @ u[t])
        far = np.array(seen)
        for k in range(ahead - 1):
            far = far @ self.A.T + u[k : k + len(far)] @ self.B.T
        return far @ self.C.T + u[ahead - 1 :] @ self.D.T


@dataclass(frozen=True)
class Measured:
    """Columns of the CSV files of a folder; of a single file, the second half is predicted."""

    folder: Path
    inputs: Sequence[str]
    outputs: Sequence[str]
    order: int
    every: int = 1
    name: str = "measured records"

    def read(self) -> list[Record]:
        """All records, less the mean of the first."""
        records = [self._read(path) for path in sorted(self.folder.glob("*.csv"))]
        if len(records) == 1:
            middle = len(records[0][0]) // 2
            records = [tuple(part[side] for part in records[0]) for side in (np.s_[:middle], np.s_[middle:])]
        means = [part.mean(axis=0) for part in records[0]]
        return [(y - means[0], u - means[1]) for y, u in records]

    def _read(self, path: Path) -> Record:
        with path.open(newline="") as file:
            dialect = csv.Sniffer().sniff(file.readline(), ",;\t")
            file.seek(0)
            rows = list(csv.DictReader(file, dialect=dialect))[:: self.every]
        return tuple(
            np.array([[float(row[column]) for column in columns] for row in rows])
            for columns in (self.outputs, self.inputs)
        )


Identify = Callable[..., Model]  # from y, u and the order
Judge = Callable[[Identify], Figures]


def run(
    *,
    measured: Measured | None = None,
    num_steps: int = 2000,
    num_records: int = 4,
    names: Sequence[str] = tuple(FAMILIES),
) -> str:
    """The table of known plants, or of measured records."""
    if measured is not None:
        return _measured(measured)
    rows = [row for name in names for row in _rows([name], partial(_known, name, num_steps, num_records), 2)]
    return peer.section(
        "identification",
        "identification",
        f"{num_records} records of {num_steps} steps with white inputs: errors of {NUM_PARAMETERS} Markov "
        "parameters of the predictor, and the time of one identification; peers at the best of "
        f"{BLOCK_ROWS} block rows for each error, their time being that of one.",
        [
            "plant",
            "peer",
            "outputs: error",
            "ours",
            "ratio",
            "inputs: error",
            "ours",
            "ratio",
            "time",
            "ours",
            "ratio",
        ],
        rows,
    )


def _amplitudes(members: Finite, num_steps: int) -> np.ndarray:
    """Of every input, by the Fisher information T sigma^2 (B'XB)_jj of its gain on the worst member.

    X = Abar'X Abar + C'S^-1 C , Abar = A - FC of the predictor.
    """
    information = []
    for plant, optimum in ((plant, lg.solve(plant)) for plant in members):
        A, B, C, F, S = (np.asarray(x) for x in (plant.A, plant.B, plant.C, optimum.F, optimum.S))
        X = scipy.linalg.solve_discrete_lyapunov((A - F @ C).T, C.T @ np.linalg.solve(S, C))
        information.append(np.diagonal(B.T @ X @ B))
    return 1 / (GAIN_ERROR * np.sqrt(num_steps * np.min(information, axis=0)))


def _known(name: str, num_steps: int, num_records: int) -> tuple[Judge, Figures]:
    """The nominal plant, with inputs that would tell each gain to GAIN_ERROR if all else were known."""
    family = FAMILIES[name]()
    plant = family.nominal()
    sigma_u = _amplitudes(family.grid(2), num_steps)
    records = [record(plant, sigma_u, num_steps, seed) for seed in range(num_records)]
    exact = exact_markov(lg.solve(plant), plant, length=NUM_PARAMETERS)
    truth = np.asarray(exact.of_outputs), np.asarray(exact.of_inputs)

    def judge(identify: Identify) -> Figures:
        """Errors of both kinds of parameters; the shortest time of one identification."""
        squares, times = [], []
        for y, u in records:
            model, spent = peer.timed(lambda y=y, u=u: identify(y, u, order=plant.num_states))
            times.append(spent)
            pairs = zip(model.markov(NUM_PARAMETERS), truth, strict=True)
            squares.append([np.sum((found - wanted) ** 2) / np.sum(wanted**2) for found, wanted in pairs])
        return np.append(np.sqrt(np.mean(squares, axis=0)), min(times))

    judge(_ours)  # compiles
    return judge, judge(_ours)


def _rows(cells: list[str], prepare: Callable[[], tuple[Judge, Figures]], num_errors: int) -> list[list[str]]:
    """A row for every peer at its best, beside ours; what comes after the errors is a time."""
    reasons = peer.absences(library for _, library, _ in PEERS)
    if len(reasons) < len({library for _, library, _ in PEERS}):
        judge, ours = prepare()
    rows = []
    for label, library, identify in PEERS:
        row = [*cells, f"{label} of {peer.name(library)}"]
        if library in reasons:
            rows.append([*row, reasons[library]])
            continue
        best = np.min([judge(partial(identify, rows=rows)) for rows in BLOCK_ROWS], axis=0)
        for index, (one, other) in enumerate(zip(best, ours, strict=True)):
            shown = [f"{x:.4f}" if index < num_errors else peer.duration(x) for x in (one, other)]
            row += [*shown, peer.ratio(one, other)]
        rows.append(row)
    return rows


def _measured(measured: Measured) -> str:
    first, *others = measured.read()

    def judge(identify: Identify) -> Figures:
        return _prediction_errors(identify(*first, order=measured.order), others)

    ours = judge(_ours)
    rows = _rows([], lambda: (judge, ours), len(AHEAD))
    header = ["peer", *(cell for ahead in AHEAD for cell in (f"{ahead} ahead", "ours", "ratio"))]
    command = f"identification --records FOLDER --inputs {','.join(measured.inputs)} --outputs "
    command += f"{','.join(measured.outputs)} --order {measured.order} --every {measured.every}"
    return peer.section(
        command,
        f"identification, {measured.name}",
        f"{len(first[0])} steps to identify from, {sum(len(y) for y, _ in others)} to predict: errors of "
        "predictions, relative to the spread of what is predicted, the mean square of all outputs; peers at "
        f"the best of {BLOCK_ROWS} block rows for each column.",
        header,
        rows,
    )


def _prediction_errors(model: Model, records: list[Record]) -> Figures:
    """For each distance ahead, root mean square over outputs and records."""
    errors = []
    for ahead in AHEAD:
        pairs = [(model.predictions(y, u, ahead), y[ahead - 1 :]) for y, u in records]
        found, wanted = (np.concatenate(part) for part in zip(*pairs, strict=True))
        with np.errstate(over="ignore", invalid="ignore"):
            share = np.mean((found - wanted) ** 2, axis=0) / np.var(wanted, axis=0)
        errors.append(float(np.sqrt(np.mean(np.nan_to_num(share, nan=np.inf)))))
    return np.array(errors)


def record(plant: lg.LQG, sigma_u: float | np.ndarray, num_steps: int, seed: int) -> Record:
    """The plant from rest, with white inputs."""
    rng = np.random.default_rng(seed)
    A, B, C, W, V = (np.asarray(X) for X in (plant.A, plant.B, plant.C, plant.W, plant.V))
    x, y = np.zeros(len(A)), np.zeros((num_steps, len(C)))
    u = sigma_u * rng.normal(size=(num_steps, B.shape[1]))
    w, v = (rng.normal(size=(num_steps, len(X))) @ np.linalg.cholesky(X).T for X in (W, V))
    for t in range(num_steps):
        y[t] = C @ x + v[t]
        x = A @ x + B @ u[t] + w[t]
    return y, u


def _ours(y: np.ndarray, u: np.ndarray, *, order: int) -> Model:
    found = realize(estimate_markov(y, u), order=order)
    A, B, C, F = (np.asarray(X) for X in (found.A, found.B, found.C, found.F))
    return Model(A, B, C, np.zeros((len(C), B.shape[1])), F)


def _nfoursid(y: np.ndarray, u: np.ndarray, *, order: int, rows: int) -> Model:
    """With the gain of the peer's noise covariances [V, X'; X, W], by a Riccati equation with cross term."""
    import pandas as pd
    from nfoursid.nfoursid import NFourSID

    names = [f"y{i}" for i in range(y.shape[1])], [f"u{i}" for i in range(u.shape[1])]
    frame = pd.DataFrame(np.hstack([y, u]), columns=names[0] + names[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = NFourSID(frame, output_columns=names[0], input_columns=names[1], num_block_rows=rows)
        method.subspace_identification()
        found, covariance = method.system_identification(rank=order)
    A, B, C, D, p = found.a, found.b, found.c, found.d, y.shape[1]
    V, X, W = covariance[:p, :p], covariance[p:, :p], covariance[p:, p:]
    Sigma = scipy.linalg.solve_discrete_are(A.T, C.T, W, V, s=X)
    F = np.linalg.solve(C @ Sigma @ C.T + V, (A @ Sigma @ C.T + X).T).T
    return Model(A, B, C, D, F)


def _sippy(method: str, y: np.ndarray, u: np.ndarray, *, order: int, rows: int) -> Model:
    from sippy_unipi import system_identification

    found = system_identification(y.T, u.T, method, SS_fixed_order=order, SS_f=rows, SS_p=rows)
    return Model(found.A, found.B, found.C, found.D, found.K)


PEERS = (
    ("N4SID", "nfoursid", _nfoursid),
    *((method, "sippy_unipi", partial(_sippy, method)) for method in ("N4SID", "CVA", "PARSIM-K")),
)
