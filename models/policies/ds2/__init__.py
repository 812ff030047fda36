"""DS2: true rates to the optimal parallelism of every operator in one step, and the manager that applies it.

Source: Kalavri et al., "Three steps is all you need: fast, accurate, automatic scaling decisions for distributed
streaming dataflows", OSDI 2018 [DS2], and the behaviour of its code (github.com/strymon-system/ds2).
"""

from models.policies.ds2.adjust import Aggregation
from models.policies.ds2.ds2_memory import ManagerOptions, ManagerState
from models.policies.ds2.optimum import OperatorRates, Optimum, optimum, source_target
from models.policies.ds2.scaling_manager import Interval, Step, advance

__all__ = [
    "Aggregation",
    "Interval",
    "ManagerOptions",
    "ManagerState",
    "OperatorRates",
    "Optimum",
    "Step",
    "advance",
    "optimum",
    "source_target",
]
