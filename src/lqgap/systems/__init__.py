"""One LQG problem: its optimum, its filters and its value targets."""

from lqgap.arguments import check_calls
from lqgap.systems.continuous import accumulate_noise, discretize, zero_order_hold
from lqgap.systems.correlated import correlate_noise, innovations_plant
from lqgap.systems.finite_horizon import FiniteOptimum, solve_finite
from lqgap.systems.kalman import (
    Belief,
    Correction,
    correct,
    filter_record,
    log_likelihood,
    predict,
    prior,
)
from lqgap.systems.loads import measure_disturbance, velocity_form
from lqgap.systems.lqg import LQG, performance_output, stack
from lqgap.systems.markov import markov_parameters, predictor_markov_parameters
from lqgap.systems.optimum import (
    Optimum,
    closed_loop_matrix,
    filter_matrix,
    predictor_matrix,
    require_converged,
    solve,
)
from lqgap.systems.signals import Signals
from lqgap.systems.steady import steady_beliefs, steady_correct, steady_predict
from lqgap.systems.transform import change_coordinates, delay_input
from lqgap.systems.value import ValueTarget, bellman_backup, bias, bias_matrix, value_target
from lqgap.systems.window import ClippedFilter, arx_matrix, arx_window, clipped_beliefs

__all__ = [
    "LQG",
    "Belief",
    "ClippedFilter",
    "Correction",
    "FiniteOptimum",
    "Optimum",
    "Signals",
    "ValueTarget",
    "accumulate_noise",
    "arx_matrix",
    "arx_window",
    "bellman_backup",
    "bias",
    "bias_matrix",
    "change_coordinates",
    "clipped_beliefs",
    "closed_loop_matrix",
    "correct",
    "correlate_noise",
    "delay_input",
    "discretize",
    "filter_matrix",
    "filter_record",
    "innovations_plant",
    "log_likelihood",
    "markov_parameters",
    "measure_disturbance",
    "performance_output",
    "predict",
    "predictor_markov_parameters",
    "predictor_matrix",
    "prior",
    "require_converged",
    "solve",
    "solve_finite",
    "stack",
    "steady_beliefs",
    "steady_correct",
    "steady_predict",
    "value_target",
    "velocity_form",
    "zero_order_hold",
]
check_calls(globals(), besides=["require_converged"])  # plants of a batch, too
