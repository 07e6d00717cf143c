"""A valid call of every public function, class and method that takes arguments, on plants as small as can be."""

import dataclasses
import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import scipy.signal

import lqgap as lg

# What functions return, or what others are made of: nobody makes one, and nothing is checked where they are made.
RESULTS = frozenset(
    [
        "Audit",
        "Bound",
        "Bounds",
        "Certificate",
        "Check",
        "Correction",
        "DeploymentCertificate",
        "Diagnosis",
        "Event",
        "FiniteOptimum",
        "Fit",
        "GapEstimate",
        "LinearStep",
        "LowerBound",
        "Margins",
        "MarkovEstimate",
        "MarkovParameters",
        "Optimum",
        "RangesBound",
        "Realization",
        "RegretEstimate",
        "Response",
        "RiccatiSolution",
        "RiccatiStep",
        "Sheet",
        "Snapshot",
        "StrongStability",
        "Switch",
        "Trace",
        "TrainingResult",
        "Trajectory",
        "Unrefuted",
        "ValueTarget",
        "WorstFound",
        "Belief",
    ]
)
# What takes no arguments or is no call.
NO_CALLS = frozenset(["FAMILIES", "__version__", "enable_x64"])


@dataclasses.dataclass(frozen=True)
class Call:
    """A call, and the names of arguments that it leaves out."""

    function: object
    args: tuple
    kwargs: dict


def plant_of(gain):
    return lg.LQG([[0.9, 0.1], [0.0, 0.8]], [[0.0], [gain]], [[1.0, 0.0]], R=[[0.5]])


@functools.cache
def calls(folder):
    """Name to call: of a method, after its class and a full stop. Files lie in the folder."""
    found = {}
    for add in (_systems, _linalg, _simulators, _policies, _evaluation, _learners, _models, _interop, _long):
        found |= {
            name: Call(function, args, kwargs) for name, (function, args, kwargs) in add(folder).items()
        }
    return found


@functools.cache
def _things():
    """Plant, optimum, class, family, policy, record y and u, key."""
    plant, rng = plant_of(1.0), np.random.default_rng(0)
    members = lg.Finite([plant, plant_of(1.4)], [[1.0], [1.4]], names=["gain"])
    family = lg.ParameterBox(plant_of, {"gain": (0.8, 1.6)})
    policy = lg.policies.StationaryLQG(plant)
    u = rng.normal(size=(40, 1))
    y = np.array([[0.0]] * 40) + 0.3 * rng.normal(size=(40, 1))
    return plant, lg.solve(plant), members, family, policy, y, u, jax.random.key(0)


def _enter_and_leave(**given):
    with lg.time_budget(**given):
        pass


def _call(function, *args, **kwargs):
    return function, args, kwargs


def _systems(_):
    s = lg.systems
    plant, optimum, _, _, _, y, u, _ = _things()
    x, one, y, u = jnp.zeros(2), jnp.zeros(1), jnp.asarray(y), jnp.asarray(u)
    belief, both = s.prior(plant), (optimum, plant)
    return {
        "LQG": _call(s.LQG, plant.A, plant.B, plant.C, Q=[[1]], R=[[1]], W=np.eye(2), V=[[1]], S0=np.eye(2)),
        "Signals": _call(s.Signals, dt=0.1, inputs=["force"], limits=(-1, 1), rate_limits=1.0, x0=[1, 2]),
        "ClippedFilter": _call(s.ClippedFilter, *both, length=3),
        "accumulate_noise": _call(s.accumulate_noise, plant.A, plant.W, dt=0.1),
        "arx_matrix": _call(s.arx_matrix, *both, length=2),
        "arx_window": _call(s.arx_window, y, u, length=2),
        "bellman_backup": _call(s.bellman_backup, *both, x, one, one),
        "bias": _call(s.bias, *both, x, one),
        "bias_matrix": _call(s.bias_matrix, *both),
        "change_coordinates": _call(s.change_coordinates, plant, np.eye(2)),
        "clipped_beliefs": _call(s.clipped_beliefs, *both, y, u, length=2),
        "closed_loop_matrix": _call(s.closed_loop_matrix, *both),
        "correct": _call(s.correct, plant, belief, one),
        "correlate_noise": _call(s.correlate_noise, plant, [[0.1], [0.1]]),
        "delay_input": _call(s.delay_input, plant, 1),
        "discretize": _call(s.discretize, plant, dt=0.1, delay=0.1),
        "filter_matrix": _call(s.filter_matrix, *both),
        "filter_record": _call(s.filter_record, plant, y, u),
        "innovations_plant": _call(
            s.innovations_plant, plant.A, plant.B, plant.C, F=optimum.F, S=optimum.S, R=[[1.0]]
        ),
        "log_likelihood": _call(s.log_likelihood, plant, y, u),
        "markov_parameters": _call(s.markov_parameters, plant, length=2),
        "measure_disturbance": _call(s.measure_disturbance, plant, [[1.0], [0.0]], size=1.0, noise=0.1),
        "performance_output": _call(s.performance_output, [[1.0, 0], [0, 0]], [[0.0], [1]]),
        "predict": _call(s.predict, plant, belief, one),
        "predictor_markov_parameters": _call(s.predictor_markov_parameters, *both, length=2),
        "predictor_matrix": _call(s.predictor_matrix, *both),
        "prior": _call(s.prior, plant),
        "require_converged": _call(s.require_converged, *both),
        "solve": _call(s.solve, plant),
        "solve_finite": _call(s.solve_finite, plant, horizon=2),
        "stack": _call(s.stack, [plant, plant]),
        "steady_beliefs": _call(s.steady_beliefs, *both, y, u),
        "steady_correct": _call(s.steady_correct, *both, x, one),
        "steady_predict": _call(s.steady_predict, plant, x, one),
        "value_target": _call(s.value_target, *both, x, one),
        "velocity_form": _call(s.velocity_form, plant, load=0.1, drift=0.1),
        "zero_order_hold": _call(s.zero_order_hold, plant.A, plant.B, dt=0.1),
    }


def _linalg(_):
    a, A, B = lg.linalg, 0.5 * jnp.eye(2), jnp.ones((2, 1))
    one, two = jnp.eye(1), jnp.eye(2)
    return {
        "certify_by_lyapunov": _call(a.certify_by_lyapunov, A),
        "certify_by_weight": _call(a.certify_by_weight, A, two),
        "inverse_sqrt_psd": _call(a.inverse_sqrt_psd, two),
        "log_det_psd": _call(a.log_det_psd, two),
        "quadratic": _call(a.quadratic, jnp.ones(2), two),
        "riccati_recursion": _call(a.riccati_recursion, two, A, B, Q=two, R=one, num_steps=2),
        "riccati_step": _call(a.riccati_step, two, A, B, Q=two, R=one),
        "solve_psd": _call(a.solve_psd, two, B),
        "solve_riccati": _call(a.solve_riccati, A, B, Q=two, R=one),
        "spectral_norm": _call(a.spectral_norm, B),
        "spectral_radius": _call(a.spectral_radius, A),
        "sqrt_psd": _call(a.sqrt_psd, two),
        "symmetrize": _call(a.symmetrize, two),
        "undetectable_modes": _call(a.undetectable_modes, A, B.T),
        "unstabilizable_modes": _call(a.unstabilizable_modes, A, B),
    }


def _simulators(_):
    s = lg.simulators
    plant, _, members, family, _, y, u, key = _things()
    named = {name: _call(make, **_first_quantity(make)) for name, make in lg.plants.FAMILIES.items()}
    return named | {
        "Ball": _call(s.Ball, plant, radius=0.1, norm="entries"),
        "Finite": _call(s.Finite, [plant, plant], [[1.0], [2.0]], names=["gain"], units=["N"]),
        "Finite.contains": _call(members.contains, plant, tolerance=1e-6),
        "Finite.cover": _call(members.cover, 0.1),
        "Finite.describe": _call(members.describe, 0),
        "Finite.describe_values": _call(members.describe_values, [1.0]),
        "Finite.grid": _call(members.grid, 2),
        "Finite.in_coordinates": _call(members.in_coordinates, np.eye(2)),
        "Finite.invariants": _call(members.invariants, length=2),
        "Finite.of": _call(s.Finite.of, members, name="members"),
        "Finite.sample": _call(members.sample, 2, key=key, replace=True),
        "Finite.subset": _call(members.subset, [0]),
        "Finite.system": _call(members.system, 0),
        "LinearSpan": _call(s.LinearSpan, [plant, plant], [(0.0, 1.0), (0.0, 1.0)]),
        "Parameter": _call(s.Parameter, "gain", 0.5, 1.5),
        "ParameterBox": _call(s.ParameterBox, plant_of, {"gain": (0.8, 1.6)}, units={"gain": "N"}),
        "ParameterBox.build": _call(family.build, gain=1.0),
        "ParameterBox.contains": _call(family.contains, plant, tolerance=1e-6),
        "ParameterBox.cover": _call(family.cover, 0.5, max_members=10),
        "ParameterBox.grid": _call(family.grid, 2),
        "ParameterBox.members": _call(family.members, [[1.0]]),
        "ParameterBox.nearest": _call(family.nearest, plant),
        "ParameterBox.sample": _call(family.sample, 2, key=key, replace=True),
        "ParameterBox.system": _call(family.system, [1.0]),
        "check_assumptions": _call(s.check_assumptions, members),
        "likelihood_set": _call(s.likelihood_set, members, y, u, delta=0.05),
        "offset_free": _call(s.offset_free, members, load=0.1, drift=0.1),
    }


def _first_quantity(make):
    """The first quantity of a family, by its default."""
    quantities = [p for p in inspect.signature(make).parameters.values() if not isinstance(p.default, str)]
    return {quantities[0].name: quantities[0].default}


def _policies(folder):
    p = lg.policies
    plant, optimum, members, _, policy, _, _, key = _things()
    systems = members.systems
    bank = p.ModelBank(systems)
    path, state = folder / "policy.safetensors", folder / "state"
    lg.save_policy(path, policy)
    controller = lg.Controller(policy, follow=[0])
    controller.save(state)
    return {
        "BoundedChanges": _call(p.BoundedChanges, policy, (-1, 1)),
        "ClippedHistory": _call(p.ClippedHistory, np.zeros((2, 1, 1)), np.zeros((2, 1, 1))),
        "ClippedHistory.from_plant": _call(p.ClippedHistory.from_plant, plant, length=2),
        "Committed": _call(p.Committed, bank, 2),
        "Controller": _call(
            lg.Controller, policy, limits=(-1, 1), follow=[0], key=key, operating_point=(0.0, 0.0)
        ),
        "Controller()": _call(controller, [0.1], reference=[1.0], applied=[0.0]),
        "Controller.reset": _call(controller.reset, key=key),
        "Controller.restore": _call(controller.restore, state),
        "Controller.save": _call(controller.save, state),
        "DualBank": _call(p.DualBank, systems, horizon=2, doubt=0.1),
        "FiniteHorizonLQG": _call(p.FiniteHorizonLQG, plant, 2),
        "Integrated": _call(p.Integrated, policy, inputs=[0]),
        "LinearDynamic": _call(p.LinearDynamic, [[0.5]], [[0.1]], [[0.1]], [[0.1]]),
        "ModelBank": _call(p.ModelBank, systems, horizon=2, mode="mixture", filters="varying"),
        "ModelBank.for_horizon": _call(bank.for_horizon, 2),
        "ModelBank.rest": _call(bank.rest, [0]),
        "ProbingBank": _call(p.ProbingBank, systems, horizon=2, stop=1, probe="auto"),
        "RandomProbe": _call(p.RandomProbe, 2, policy, scale=1.0),
        "Recurrent": _call(
            p.Recurrent, num_inputs=1, num_outputs=1, width=2, output_scale=[1.0], input_scale=[1.0], key=key
        ),
        "Saturated": _call(p.Saturated, policy, (-1, 1)),
        "StationaryLQG": _call(p.StationaryLQG, plant, filters="varying", optimum=optimum),
        "Zero": _call(p.Zero, num_inputs=1, num_outputs=1),
        "explore_then_commit": _call(p.explore_then_commit, bank, 2, scale=1.0),
        "load_policy": _call(lg.load_policy, path),
        "save_policy": _call(lg.save_policy, path, policy),
    }


def _evaluation(_):
    e = lg.evaluation
    plant, _, members, family, policy, _, _, key = _things()
    few = {"horizon": 3, "key": key, "num_rollouts": 4}
    linear = lg.policies.LinearDynamic(Dc=[[-0.1]])
    found = e.gap(policy, members, **few)
    return {
        "GapEstimate.upper_limit": _call(found.upper_limit, 0.05),
        "closed_loop_radius": _call(e.closed_loop_radius, linear, plant),
        "exact_average_cost": _call(e.exact_average_cost, linear, plant),
        "exact_cost": _call(e.exact_cost, linear, plant, horizon=3, method=None, ends=True),
        "exact_gap": _call(e.exact_gap, linear, plant, horizon=3, ends=True),
        "find_worst": _call(e.find_worst, policy, family, **few, ends=True, limits=(-1, 1)),
        "gap": _call(e.gap, policy, members, **few, ends=True, limits=(-1, 1), precision="float64"),
        "gap_by_horizon": _call(
            e.gap_by_horizon, policy, members, horizons=[2, 3], key=key, num_rollouts=4, ends=True
        ),
        "margins": _call(e.margins, linear, plant),
        "regret": _call(e.regret, policy, members, **few, limits=(-1, 1)),
        "respond": _call(
            e.respond, policy, plant, references=np.ones((5, 1)), follow=[0], loads=np.zeros((5, 1))
        ),
        "rollout": _call(e.rollout, policy, plant, horizon=3, key=key, limits=(-1, 1), precision="float64"),
    }


def _learners(_):
    a = lg.adaptive
    plant, _, members, _, policy, _, _, key = _things()
    told = a.UnknownPlant(order=2, Q=plant.Q, R=plant.R)
    one = {"horizon": 4, "num_points": 2, "limits": (-1, 1)}
    return {
        "AdaptOn": _call(a.AdaptOn, told, memory=2, update="newton", feature="nature", regularization=1.0),
        "CertaintyEquivalence": _call(a.CertaintyEquivalence, members, probing=0.1, delta=0.05, horizon=3),
        "DisturbanceResponse": _call(a.DisturbanceResponse, plant, memory=2, update="newton"),
        "ExploreThenCommit": _call(a.ExploreThenCommit, told, num_random=20, confidence=0.95),
        "FilterBank": _call(a.FilterBank, members, "hysteresis", margin=1.0, dwell=2, delta=0.05, horizon=3),
        "IdentifiedCertaintyEquivalence": _call(a.IdentifiedCertaintyEquivalence, told, probing=0.1),
        "IdentifiedDisturbanceResponse": _call(
            a.IdentifiedDisturbanceResponse, told, horizon=100, memory=2, update="newton"
        ),
        "LQGVTR": _call(
            a.LQGVTR, members, horizon=50, constants="calibrated", options=a.VTROptions(), fallback=policy
        ),
        "LqgOpt": _call(a.LqgOpt, told),
        "ThompsonSampling": _call(a.ThompsonSampling, members),
        "TrainedPolicy": _call(a.TrainedPolicy, policy, members),
        "UnknownPlant": _call(
            a.UnknownPlant, order=2, Q=plant.Q, R=plant.R, window=4, excitation=0.3, chooses_order=False
        ),
        "UnknownPlant.like": _call(a.UnknownPlant.like, members, window=4),
        "VTRConstants": _call(a.VTRConstants, psi=1.0, beta=1.0, length=2, delta=0.05),
        "VTROptions": _call(a.VTROptions, confidence="likelihood", plan="bayes"),
        "calibrate": _call(a.calibrate, members, delta=0.05, options=a.VTROptions()),
        "run": _call(a.run, a.ThompsonSampling(members), plant, key=key, **one),
        "run_many": _call(
            a.run_many, a.ThompsonSampling(members), plant, keys=jax.random.split(key, 2), **one
        ),
        "theoretical": _call(a.theoretical, members, horizon=100),
    }


def _models(_):
    i, t = lg.identification, lg.theory
    plant, optimum, members, family, _, y, u, _ = _things()
    markov = i.exact_markov(optimum, plant, length=4)
    model = i.innovation_form(optimum, plant)
    window = jnp.zeros(5)
    seen = lg.Finite([lg.LQG([[a]], [[1.0]], [[1.0]]) for a in (0.5, 0.8)])  # the whole state
    target = lg.systems.value_target(optimum, plant, jnp.zeros(2), jnp.zeros(1))
    return {
        "MarkovRegression": _call(
            i.MarkovRegression, length=2, num_outputs=1, num_inputs=1, num_kept=4, ridge=1.0
        ),
        "Realization.controller": _call(model.controller, Q=[[1.0]], R=[[1.0]]),
        "Realization.markov": _call(model.markov, length=2),
        "diagnose": _call(i.diagnose, plant, y, u, num_lags=3),
        "estimate_markov": _call(i.estimate_markov, y, u, length=2, ridge=0.1),
        "exact_markov": _call(i.exact_markov, optimum, plant, length=2),
        "fit_parameters": _call(i.fit_parameters, family, y, u, num_starts=1),
        "innovation_form": _call(i.innovation_form, optimum, plant),
        "pin_gain": _call(i.pin_gain, seen, y, u, length=2),
        "realize": _call(i.realize, markov, order=2, weighting="plain"),
        "select_models": _call(
            i.select_models, members, y, u, method="likelihood", delta=0.05, length=2, ridge=1.0, C_w=1.0
        ),
        "truncation_length": _call(i.truncation_length, members, horizon=10),
        "bounds": _call(t.bounds, members, horizon=100, delta=0.05, C_w=1.0),
        "complexity": _call(t.complexity, members, horizon=10, length=2, delta=0.05, num_runs=2, num_steps=2),
        "selection_constant": _call(t.selection_constant, members, delta=0.05),
        "constants": _call(t.constants, members, horizon=10, delta=0.05, C_w=1.0, certificate="filter"),
        "certify_deployment": _call(t.certify_deployment, members, y, u, horizon=40, delta=0.05),
        "certify_deployments": _call(
            t.certify_deployments, members, y[None], u[None], horizon=40, delta=0.05
        ),
        "model_features": _call(t.model_features, optimum, plant, length=2),
        "num_features": _call(t.num_features, num_inputs=1, num_outputs=1, length=2),
        "overactuated_class": _call(t.overactuated_class, horizon=100, c=0.5, radius="corrected"),
        "sample_features": _call(t.sample_features, target, window),
    }


def _interop(folder):
    i = lg.interop
    plant, _, _, _, policy, _, _, key = _things()
    linear = lg.policies.LinearDynamic([[0.5]], [[0.1]], [[0.1]], [[0.1]])
    system = scipy.signal.dlti(plant.A, plant.B, plant.C, [[0.0]], dt=0.1)
    control = scipy.signal.dlti([[0.5]], [[0.1]], [[0.1]], [[0.1]], dt=0.1)
    path = folder / "plant.mat"
    i.save_mat(path, plant, sampling_time=0.1)
    predictor, env = i.Predictor(policy), i.LQGEnv(plant, horizon=5)
    many = i.LQGVectorEnv(plant, num_envs=2, horizon=5)
    env.reset(seed=0), many.reset(seed=0)
    return {
        "LQGEnv": _call(i.LQGEnv, plant, horizon=5, limits=(-1, 1)),
        "LQGEnv.reset": _call(env.reset, seed=1, options={}),
        "LQGEnv.step": _call(env.step, np.zeros(1)),
        "LQGVectorEnv": _call(i.LQGVectorEnv, plant, num_envs=2, horizon=5, limits=(-1, 1)),
        "LQGVectorEnv.reset": _call(many.reset, seed=1),
        "LQGVectorEnv.step": _call(many.step, np.zeros((2, 1))),
        "Predictor": _call(i.Predictor, policy, limits=(-1, 1), key=key),
        "Predictor.predict": _call(
            predictor.predict, np.zeros((2, 1)), predictor.predict(np.zeros((2, 1)))[1]
        ),
        "from_dlti": _call(i.from_dlti, system, delay=0.0, R=[[1.0]]),
        "from_control": _call(i.from_control, i.to_control(plant, sampling_time=0.1), R=[[1.0]]),
        "load_mat": _call(i.load_mat, path, sampling_time=0.1),
        "policy_from_control": _call(i.policy_from_control, i.to_control(linear, sampling_time=0.1)),
        "policy_from_dlti": _call(i.policy_from_dlti, control),
        "save_mat": _call(i.save_mat, path, plant, sampling_time=0.1),
        "to_control": _call(i.to_control, plant, sampling_time=0.1),
        "to_dlti": _call(i.to_dlti, plant, sampling_time=0.1),
    }


def _long(folder):
    """What compiles much even where it has little to do."""
    _, _, members, _family, _, _, _, key = _things()
    t = lg.training
    linear = lg.policies.LinearDynamic(Dc=[[-0.1]])
    options = t.TrainingOptions(
        steps=1, num_rollouts=2, validate_every=1, validation_rollouts=2, receipt_rollouts=2, rounds=1,
        polish=0, probe="off", precision="float64",
    )  # fmt: skip
    few = {"horizon": 3, "key": key, "options": options, "limits": (-1, 1), "monitor": t.Monitor()}
    return {
        "time_budget": _call(_enter_and_leave, time="1 h", folder=None),
        "Monitor": _call(t.Monitor, callback=print, folder=folder / "training"),
        "TrainingOptions": _call(t.TrainingOptions, **dataclasses.asdict(options)),
        "find_stabilizer": _call(t.find_stabilizer, members),
        "train_randomized": _call(t.train_randomized, linear, members, **few, weights=[0.5, 0.5], ends=True),
        "train_robust": _call(t.train_robust, linear, members, **few, ends=True),
        "certify": _call(
            lg.certify, linear, members, horizon=3, key=key, num_rollouts=4, delta=0.05, ends=True
        ),
        "minimax_lower_bound": _call(
            lg.minimax_lower_bound, members, horizon=3, kinds=["two-point"], ends=True
        ),
        "compare": _call(
            lg.compare, ["nominal"], {"two": members}, [10], 2, folder=folder / "compared", processes=1
        ),
    }
