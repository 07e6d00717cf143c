"""A policy meets a system: rollouts, exact costs, gap and regret."""

from lqgap.arguments import check_calls
from lqgap.evaluation.exact import closed_loop_radius, exact_average_cost, exact_cost, exact_gap
from lqgap.evaluation.gap import GapEstimate, gap
from lqgap.evaluation.horizons import gap_by_horizon
from lqgap.evaluation.margins import Margins, margins
from lqgap.evaluation.regret import RegretEstimate, regret
from lqgap.evaluation.response import Response, respond
from lqgap.evaluation.rollout import Trajectory, rollout
from lqgap.evaluation.worst import WorstFound, find_worst

__all__ = [
    "GapEstimate",
    "Margins",
    "RegretEstimate",
    "Response",
    "Trajectory",
    "WorstFound",
    "closed_loop_radius",
    "exact_average_cost",
    "exact_cost",
    "exact_gap",
    "find_worst",
    "gap",
    "gap_by_horizon",
    "margins",
    "regret",
    "respond",
    "rollout",
]
check_calls(globals())
