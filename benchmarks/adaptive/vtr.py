"""LQG-VTR: how regret and switches grow, how often the truth is lost, and what a step costs."""

import jax
import numpy as np

import lqgap as lg
from benchmarks.timing import seconds, table
from lqgap.adaptive import LQGVTR, Trace, VTRConstants, VTROptions, run_many
from lqgap.adaptive import run as adapt
from lqgap.simulators import Finite
from lqgap.systems.optimum import filter_matrix

FAMILIES = {"mass_spring_damper": 5, "dc_motor": 5, "web_server": 3}  # points of the grid
HORIZON = 100_000
NUM_RUNS = 8
NUM_COVERAGE, COVERAGE_HORIZON = 500, 1_000
DECADES = (100, 1_000, 10_000, 100_000)


def run() -> str:
    """Five sections."""
    return "\n".join(section() for section in SECTIONS)


def regret() -> str:
    """Regret and switches against the horizon."""
    rows = []
    for name, points in FAMILIES.items():
        members = getattr(lg.plants, name)().grid(points)
        traces = _runs(LQGVTR(members, horizon=HORIZON), members, NUM_RUNS, horizon=HORIZON)
        steps, mean = traces[0].steps, np.mean([trace.regret for trace in traces], axis=0)
        at = {h: mean[np.searchsorted(steps, h)] for h in (2_000, 20_000, HORIZON)}
        slope = np.log(at[HORIZON] / at[2_000]) / np.log(HORIZON / 2_000)
        switches = [np.mean([sum(s.step <= h for s in t.switches) for t in traces]) for h in DECADES]
        per_decade = np.polyfit(np.log10(DECADES), switches, 1)[0]
        rows.append(
            [name, str(len(members))]
            + [f"{value:.0f}" for value in at.values()]
            + [f"{slope:.2f}", "0.75"]
            + [f"{count:.1f}" for count in switches]
            + [f"{per_decade:.1f}", f"{np.mean([t.is_truth_inside for t in traces]):.2f}"]
        )
    header = ["family", "members", "regret, 2e3", "2e4", "1e5", "slope", "wanted below"]
    header += ["switches, 1e2", "1e3", "1e4", "1e5", "a decade", "truth in every set"]
    return table(
        "LQG-VTR: regret",
        f"Calibrated constants, mean of {NUM_RUNS} runs with a member drawn as the truth; regret by its "
        "identity, slope in logarithms between 2e3 and 1e5 steps.",
        header,
        rows,
    )


def coverage() -> str:
    """How often the truth is in all sets of a run."""
    rows = []
    for name, points in FAMILIES.items():
        members = getattr(lg.plants, name)().grid(points)
        row = [name]
        for confidence in ("targets", "likelihood"):
            options = VTROptions(confidence=confidence)
            algorithm = LQGVTR(members, horizon=COVERAGE_HORIZON, options=options)
            traces = _runs(algorithm, members, NUM_COVERAGE, horizon=COVERAGE_HORIZON)
            inside = np.mean([trace.is_truth_inside for trace in traces])
            stopped = sum(trace.is_stopped for trace in traces)
            row += [f"{inside:.3f}", f"{np.mean([t.num_members[-1] for t in traces]):.1f}", str(stopped)]
        rows.append([*row, "0.95"])
    header = ["family"]
    for kind in ("targets", "likelihood"):
        header += [f"{kind}: truth in every set", "members left", "stopped"]
    return table(
        "LQG-VTR: coverage",
        f"{NUM_COVERAGE} runs of {COVERAGE_HORIZON} steps, a member drawn as the truth, delta = 0.05.",
        [*header, "wanted"],
        rows,
    )


def histories() -> str:
    """Clipped against full history, and how the error of clipping decays."""
    members = lg.plants.mass_spring_damper().grid(5)
    known = LQGVTR(members, horizon=20_000).constants
    rows = []
    for tolerance in (1e-3, 1e-5):
        length = lg.evaluation.plan_memory(members, tolerance=tolerance).length
        constants = VTRConstants(
            psi=float(known.psi), beta=float(known.beta), length=length, state_bound=float(known.state_bound)
        )
        apart, same, total = _compare_histories(members, constants)
        rows.append([f"{tolerance:.0e}", str(length), f"{same} of {total}", str(apart), "2"])
    alone = members.subset([12])
    rate = float(np.max(np.abs(np.linalg.eigvals(filter_matrix(lg.solve(alone[0]), alone[0])))))
    lengths, errors = (4, 8, 12, 16), []
    for short in lengths:
        constants = VTRConstants(psi=1.0, beta=1.0, length=short, state_bound=1e9)
        trace = adapt(LQGVTR(alone, horizon=2_000, constants=constants), alone[0], key=jax.random.key(0))
        errors.append(float(np.max(trace.clip_error)))
    fitted = float(np.exp(np.polyfit(lengths, np.log(errors), 1)[0]))
    decay = ", ".join(f"{error:.1e} (l = {length})" for length, error in zip(lengths, errors, strict=True))
    return table(
        "LQG-VTR: clipped history",
        f"A mass on a spring, 20,000 steps, four runs with the clipped and with the full history. The "
        f"largest error of clipping on one member, in standard deviations of the innovation, is {decay}: it "
        f"decays by {fitted:.3f} a step, and the spectral radius of (I - LC) A is {rate:.3f}.",
        ["tolerance of plan_memory", "length", "switches to the same model", "steps apart at most", "wanted"],
        rows,
    )


def between() -> str:
    """A truth between the members of a cover."""
    family = lg.plants.mass_spring_damper()
    members, truths = family.grid(5), family.sample(NUM_RUNS, key=jax.random.key(3))
    rows = []
    for refine in (False, True):
        algorithm = LQGVTR(members, horizon=20_000, family=family, refine=refine)
        traces = run_many(
            algorithm,
            truths.systems,
            keys=jax.random.split(jax.random.key(4), NUM_RUNS),
            truth=np.asarray(truths.parameters),
        )
        at = np.searchsorted(traces[0].steps, (2_000, 20_000))
        mean = np.mean([trace.regret for trace in traces], axis=0)
        rows.append(
            [
                "models between the members" if refine else "members, widened sets",
                *(f"{value:.0f}" for value in mean[at]),
                f"{np.mean([trace.is_truth_inside for trace in traces]):.2f}",
                f"{np.mean([trace.num_members[-1] for trace in traces]):.1f}",
                str(sum(trace.is_stopped for trace in traces)),
                f"{np.mean([len(trace.switches) for trace in traces]):.1f}",
            ]
        )
        if refine and algorithm.refinement is not None:
            residuals = [float(algorithm.refinement.residual(theta)) for theta in truths.parameters]
    header = ["over a 5 x 5 cover", "regret, 2e3", "2e4", "truth in every set", "members left", "stopped"]
    return table(
        "LQG-VTR: a truth between the members",
        f"A mass on a spring whose parameters are drawn from the box, {NUM_RUNS} runs. The features of those "
        f"plants lie in the span of the members' up to a residual of {max(residuals):.1e} at most.",
        [*header, "switches"],
        rows,
    )


def speed() -> str:
    """What a step costs, alone."""
    family = lg.plants.mass_spring_damper()
    members = family.grid(5)
    algorithm = LQGVTR(members, horizon=HORIZON)
    traces = [adapt(algorithm, members[12], key=jax.random.key(0)) for _ in range(5)]
    # The fastest of five for each block: other work on the machine comes in bursts.
    took = np.min([np.diff(trace.seconds, prepend=0.0) for trace in traces], axis=0)
    tenth = len(took) // 10
    flat = np.median(took[-tenth:]) / np.median(took[:tenth])
    step = min(trace.seconds[-1] for trace in traces) / (HORIZON + 1)
    written, by_products = _naive_seconds(len(members), 20_000)
    rows = [
        ["a step, 25 members", f"{1e6 * step:.0f} us", ""],
        ["last tenth of 1e5 steps over the first", f"{flat:.2f}", "at most 1.15"],
        ["naive recomputation at step 20,000, as written", f"{written / step:.0f}x", "200x"],
        ["the same by matrix products", f"{by_products / step:.0f}x", ""],
    ]
    for side, horizon, wanted in ((10, 40_000, "3x"), (32, 5_000, "")):
        many = family.grid(side)
        many = many if side == 10 else many.subset(np.arange(1000))
        steps = {}
        for buffer_size in (64, 0):
            algorithm = LQGVTR(many, horizon=horizon, options=VTROptions(buffer_size=buffer_size))
            took = [
                adapt(algorithm, many[len(many) // 2], key=jax.random.key(0)).seconds[-1] for _ in range(3)
            ]
            steps[buffer_size] = (horizon + 1) / min(took)
        rows.append([f"lazy against eager, {len(many)} members", f"{steps[64] / steps[0]:.1f}x", wanted])
        rows.append(
            [f"steps a second, {len(many)} members", f"{steps[64]:.0f}", "1000" if side == 32 else ""]
        )
    note = "One run at a time; the fastest of three or five, since other work on the machine comes in bursts."
    return table("LQG-VTR: speed", note, ["what", "measured", "wanted"], rows)


def _runs(algorithm: LQGVTR, members: Finite, count: int, *, horizon: int) -> list[Trace]:
    rows = np.random.default_rng(0).integers(len(members), size=count)
    plants = jax.tree.map(lambda leaf: leaf[rows], members.systems)
    return run_many(algorithm, plants, horizon=horizon, keys=jax.random.split(jax.random.key(1), count))


def _compare_histories(members: Finite, constants: VTRConstants) -> tuple[int, int, int]:
    """How far apart their switches are at most, how many choose the same model, and of how many."""
    apart, same, total = 0, 0, 0
    for seed in range(4):
        clipped, full = (
            adapt(
                LQGVTR(members, horizon=20_000, constants=constants, options=VTROptions(history=history)),
                members[(7 * seed) % len(members)],
                key=jax.random.key(seed),
            ).switches
            for history in ("clipped", "full")
        )
        total += max(len(clipped), len(full))
        for one, other in zip(clipped, full, strict=False):
            apart = max(apart, abs(one.step - other.step))
            same += one.theta == other.theta
    return apart, same, total


def _naive_seconds(num_members: int, num_samples: int) -> tuple[float, float]:
    """Of the score, the estimate and the set from all samples, as written and by matrix products."""
    draws = np.random.default_rng(0)
    F, Y = draws.normal(size=(num_samples, num_members)), draws.normal(size=num_samples)

    def as_written() -> None:
        halves = [((part[:, :, None] - part[:, None, :]) ** 2).sum(axis=0) for part in np.split(F, 2)]
        np.max(halves[1] / (halves[0] + 1.0))
        np.argmin(((F - Y[:, None]) ** 2).sum(axis=0))

    def by_products() -> None:
        grams = [part.T @ part for part in np.split(F, 2)]
        dists = [np.diag(g)[:, None] + np.diag(g)[None, :] - 2 * g for g in grams]
        np.max(dists[1] / (dists[0] + 1.0))
        np.argmin(np.diag(grams[0] + grams[1]) - 2 * F.T @ Y)

    return seconds(as_written, rounds=5), seconds(by_products)


SECTIONS = (regret, coverage, histories, between, speed)

if __name__ == "__main__":
    lg.enable_x64()
    for section in SECTIONS:
        print(section(), flush=True)
