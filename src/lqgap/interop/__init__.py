"""Other people's tools: python-control, SciPy, MATLAB, Gymnasium and stable-baselines3.

Importing it makes the environment `lqgap/LQG-v0` known to Gymnasium.
"""

from lqgap.interop.control import from_control, policy_from_control, to_control
from lqgap.interop.environment import LQGEnv, register
from lqgap.interop.mat import load_mat, save_mat
from lqgap.interop.predict import Predictor
from lqgap.interop.scipy_signal import from_dlti, policy_from_dlti, to_dlti
from lqgap.interop.vector_environment import LQGVectorEnv

__all__ = [
    "LQGEnv",
    "LQGVectorEnv",
    "Predictor",
    "from_control",
    "from_dlti",
    "load_mat",
    "policy_from_control",
    "policy_from_dlti",
    "save_mat",
    "to_control",
    "to_dlti",
]

register()
