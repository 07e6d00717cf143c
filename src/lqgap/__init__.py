"""Train in simulation, know the gap: see https://arxiv.org/abs/2210.15598 for the theory.

Names are loaded on first use, so that `import lqgap` and the command line start without JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

from lqgap.errors import (
    CorruptFileError,
    InvalidArgumentError,
    InvalidStudyError,
    InvalidSystemError,
    LqgapError,
    LqgapWarning,
    NotConvergedError,
    NotDetectableError,
    NotStabilizableError,
    PrecisionError,
    StorageError,
)
from lqgap.version import __version__

if TYPE_CHECKING:
    from lqgap import (
        adaptive,
        evaluation,
        identification,
        interop,
        linalg,
        policies,
        simulators,
        systems,
        theory,
        training,
    )
    from lqgap.evaluation import (
        exact_average_cost,
        exact_cost,
        exact_gap,
        gap,
        plan_memory,
        regret,
        rollout,
    )
    from lqgap.policies import Controller, load_policy, save_policy
    from lqgap.simulators import check_assumptions, likelihood_set, plants
    from lqgap.systems import (
        LQG,
        bias,
        log_likelihood,
        require_converged,
        solve,
        solve_finite,
        stack,
        value_target,
    )
    from lqgap.theory import certify, certify_deployment, minimax_lower_bound
    from lqgap.training import find_stabilizer, train_randomized, train_robust

_LAZY = {
    "evaluation": "lqgap.evaluation",
    "adaptive": "lqgap.adaptive",
    "identification": "lqgap.identification",
    "interop": "lqgap.interop",
    "linalg": "lqgap.linalg",
    "plants": "lqgap.simulators.plants",
    "policies": "lqgap.policies",
    "simulators": "lqgap.simulators",
    "systems": "lqgap.systems",
    "theory": "lqgap.theory",
    "training": "lqgap.training",
    "check_assumptions": "lqgap.simulators",
    "likelihood_set": "lqgap.simulators",
    "Controller": "lqgap.policies",
    "load_policy": "lqgap.policies",
    "save_policy": "lqgap.policies",
    "exact_average_cost": "lqgap.evaluation",
    "exact_cost": "lqgap.evaluation",
    "exact_gap": "lqgap.evaluation",
    "find_stabilizer": "lqgap.training",
    "gap": "lqgap.evaluation",
    "plan_memory": "lqgap.evaluation",
    "regret": "lqgap.evaluation",
    "rollout": "lqgap.evaluation",
    "certify": "lqgap.theory",
    "certify_deployment": "lqgap.theory",
    "minimax_lower_bound": "lqgap.theory",
    "train_randomized": "lqgap.training",
    "train_robust": "lqgap.training",
    "LQG": "lqgap.systems",
    "bias": "lqgap.systems",
    "log_likelihood": "lqgap.systems",
    "require_converged": "lqgap.systems",
    "solve": "lqgap.systems",
    "solve_finite": "lqgap.systems",
    "stack": "lqgap.systems",
    "value_target": "lqgap.systems",
}

__all__ = [
    "LQG",
    "Controller",
    "CorruptFileError",
    "InvalidArgumentError",
    "InvalidStudyError",
    "InvalidSystemError",
    "LqgapError",
    "LqgapWarning",
    "NotConvergedError",
    "NotDetectableError",
    "NotStabilizableError",
    "PrecisionError",
    "StorageError",
    "__version__",
    "adaptive",
    "bias",
    "certify",
    "certify_deployment",
    "check_assumptions",
    "enable_x64",
    "evaluation",
    "exact_average_cost",
    "exact_cost",
    "exact_gap",
    "find_stabilizer",
    "gap",
    "identification",
    "interop",
    "likelihood_set",
    "linalg",
    "load_policy",
    "log_likelihood",
    "minimax_lower_bound",
    "plan_memory",
    "plants",
    "policies",
    "regret",
    "require_converged",
    "rollout",
    "save_policy",
    "simulators",
    "solve",
    "solve_finite",
    "stack",
    "systems",
    "theory",
    "train_randomized",
    "train_robust",
    "training",
    "value_target",
]


def enable_x64() -> None:
    """Switch JAX to double precision, which lqgap requires; call it before any JAX computation."""
    import jax

    jax.config.update("jax_enable_x64", True)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'lqgap' has no attribute {name!r}")
    module = importlib.import_module(_LAZY[name])
    return module if module.__name__.endswith(f".{name}") else getattr(module, name)


def __dir__() -> list[str]:
    return __all__
