from . import adaptive as adaptive
from . import evaluation as evaluation
from . import identification as identification
from . import interop as interop
from . import linalg as linalg
from . import policies as policies
from . import simulators as simulators
from . import systems as systems
from . import theory as theory
from . import training as training
from .errors import CorruptFileError as CorruptFileError
from .errors import InvalidArgumentError as InvalidArgumentError
from .errors import InvalidStudyError as InvalidStudyError
from .errors import InvalidSystemError as InvalidSystemError
from .errors import LqgapError as LqgapError
from .errors import LqgapWarning as LqgapWarning
from .errors import NotConvergedError as NotConvergedError
from .errors import NotDetectableError as NotDetectableError
from .errors import NotStabilizableError as NotStabilizableError
from .errors import PrecisionError as PrecisionError
from .errors import RefutedClassError as RefutedClassError
from .errors import StorageError as StorageError
from .evaluation import exact_average_cost as exact_average_cost
from .evaluation import exact_cost as exact_cost
from .evaluation import exact_gap as exact_gap
from .evaluation import find_worst as find_worst
from .evaluation import gap as gap
from .evaluation import margins as margins
from .evaluation import regret as regret
from .evaluation import rollout as rollout
from .experiments.compare import compare as compare
from .policies import Controller as Controller
from .policies import load_policy as load_policy
from .policies import save_policy as save_policy
from .simulators import Finite as Finite
from .simulators import ParameterBox as ParameterBox
from .simulators import check_assumptions as check_assumptions
from .simulators import likelihood_set as likelihood_set
from .simulators import offset_free as offset_free
from .simulators import plants as plants
from .systems import LQG as LQG
from .systems import log_likelihood as log_likelihood
from .systems import measure_disturbance as measure_disturbance
from .systems import solve as solve
from .systems import solve_finite as solve_finite
from .systems import stack as stack
from .theory import certify as certify
from .theory import certify_deployment as certify_deployment
from .theory import minimax_lower_bound as minimax_lower_bound
from .training import find_stabilizer as find_stabilizer
from .training import train_randomized as train_randomized
from .training import train_robust as train_robust

__version__: str

def enable_x64() -> None:
    """Switch JAX to double precision, which lqgap requires; call it before any JAX computation."""
