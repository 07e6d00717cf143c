"""Other tools: python-control, SciPy, MATLAB, Gymnasium and stable-baselines3.

Names are loaded on first use, so that reading a MAT file loads neither Gymnasium nor `scipy.signal`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lqgap.interop.environment import LQGEnv
    from lqgap.interop.lti import (
        from_control,
        from_dlti,
        policy_from_control,
        policy_from_dlti,
        to_control,
        to_dlti,
    )
    from lqgap.interop.mat import load_mat, save_mat
    from lqgap.interop.predict import Predictor
    from lqgap.interop.vector_environment import LQGVectorEnv

_LAZY = {
    "LQGEnv": "environment",
    "LQGVectorEnv": "vector_environment",
    "Predictor": "predict",
    "from_control": "lti",
    "from_dlti": "lti",
    "load_mat": "mat",
    "policy_from_control": "lti",
    "policy_from_dlti": "lti",
    "save_mat": "mat",
    "to_control": "lti",
    "to_dlti": "lti",
}

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


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'lqgap.interop' has no attribute {name!r}")
    return getattr(importlib.import_module(f"lqgap.interop.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return __all__
