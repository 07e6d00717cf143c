"""The methods that a study can compare, simplest first: of equals the first is recommended."""

from lqgap.experiments.methods.adapt_on import Adapting
from lqgap.experiments.methods.bank import Bank
from lqgap.experiments.methods.base import AbstractMethod
from lqgap.experiments.methods.certainty import Certainty
from lqgap.experiments.methods.disturbance import Disturbance
from lqgap.experiments.methods.explore import Explore
from lqgap.experiments.methods.hysteresis import Hysteresis
from lqgap.experiments.methods.identified import Identified
from lqgap.experiments.methods.identify import Identify
from lqgap.experiments.methods.likeliest import Likeliest
from lqgap.experiments.methods.linear import Linear
from lqgap.experiments.methods.lqg_opt import Optimistic
from lqgap.experiments.methods.nominal import Nominal
from lqgap.experiments.methods.oracle import Oracle
from lqgap.experiments.methods.randomized import Randomized
from lqgap.experiments.methods.robust import Robust
from lqgap.experiments.methods.thompson import Thompson
from lqgap.experiments.methods.vtr import VTR

METHODS: dict[str, type[AbstractMethod]] = {
    "nominal": Nominal,
    "linear": Linear,
    "bank": Bank,
    "map": Likeliest,
    "hysteresis": Hysteresis,
    "certainty": Certainty,
    "thompson": Thompson,
    "randomized": Randomized,
    "robust": Robust,
    "identify": Identify,
    "vtr": VTR,
    "identified": Identified,
    "explore": Explore,
    "lqg_opt": Optimistic,
    "disturbance": Disturbance,
    "adapt_on": Adapting,
    "oracle": Oracle,
}
