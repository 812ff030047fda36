"""ContTune: continuous tuning of parallelism by the Big-small algorithm and conservative Bayesian optimisation (CBO).

Source: Lian et al., "ContTune: Continuous Tuning by Conservative Bayesian Optimization for Distributed Stream Data
Processing Systems", PVLDB 16(13), 2023 [ContTune].  Its controller, acquisition code and thresholds are not public.
"""

from models.policies.conttune.acquisition_functions import Acquisition, known_share
from models.policies.conttune.capacity_history import ObservedCapacity, add_observation
from models.policies.conttune.controller import Provision, Thresholds, is_worth_restart, provision
from models.policies.conttune.small import OperatorProblem, Suggestion, propose
from models.policies.conttune.tuning_loop import Memory, Options, Step, advance, big_step

__all__ = [
    "Acquisition",
    "Memory",
    "ObservedCapacity",
    "OperatorProblem",
    "Options",
    "Provision",
    "Step",
    "Suggestion",
    "Thresholds",
    "add_observation",
    "advance",
    "big_step",
    "is_worth_restart",
    "known_share",
    "propose",
    "provision",
]
