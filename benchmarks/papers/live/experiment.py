"""The experiment: one job per paper, the same three load steps for all, real and simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from include.settings import Planner
from lab.local_flink.load import AGGREGATE, ENRICH, SINK, SOURCE
from lab.replay.clairvoyant import compute_true_curves
from lab.replay.workload import Workload
from lab.simulation.spec import JobSpec, OperatorSpec
from models.bundle.job_models import JobModels, LatencyModel, RecoveryModel

STEPS = ((200.0, 120), (800.0, 300), (250.0, 300))
"""Records/s of the source, and for how many seconds.

Each load leaves a sixth or more of the capacity of the fewest subtasks that suffice, so that a capacity measured a
little wrong changes no decision; DS2, which waits for several intervals, takes some four minutes for a step.
"""
TOTAL_S = sum(seconds for _, seconds in STEPS)
WAIT_US, COST_US = 3000, 10
PER_SUBTASK_PER_S = 1e6 / (WAIT_US + COST_US)
"""Records/s that one subtask of ``enrich`` can process at most: it waits for each."""
SLOTS_MAX, WINDOW_S, DECIDE_EVERY_S, DOWNTIME_S = 4, 10, 20, 5.0
RETAINED_WINDOWS = 12
# No operator but `enrich` is near its capacity.
_AMPLE_PER_S = 50_000.0
_EMIT_EVERY = 10


@dataclass(frozen=True, slots=True)
class PaperPolicy:
    """The policy of a paper.

    Attributes:
        paper: for people.
        name: in the catalogue.
        parameters: other than its defaults: its times are those of the experiment.
        reads_models: it is given the capacity of the operators, which the pipeline would have trained.
    """

    paper: str
    name: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    reads_models: bool = False


PAPERS = (
    PaperPolicy("DS2", "ds2"),
    PaperPolicy("ContTune", "conttune_a3"),
    PaperPolicy("Dragster", "dragster_saddle", {"slot_s": 60.0}, reads_models=True),
    PaperPolicy("MDP/RL", "rl_decentralised", {"least_slots": 3}, reads_models=True),
    PaperPolicy(
        "Phoebe",
        "phoebe",
        {"scale_out_min": 1, "evaluation_interval_s": 40, "horizon_s": 60, "recovery_target_s": 120.0},
        reads_models=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Change:
    """A decision that changed a job.

    Attributes:
        step: number of the load step in which it was taken.
        wanted: parallelism of ``enrich``, and the most of any operator.
    """

    step: int
    wanted: tuple[int, int]


@dataclass(slots=True)
class Trial:
    """What a policy did.

    Attributes:
        changes: in order.
        ends: parallelism of ``enrich`` at the end of each step.
        decisions: how often it was asked.
        capacities_per_s: records/s of one busy subtask of ``enrich``, of each window that showed it.
    """

    changes: list[Change] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    decisions: int = 0
    capacities_per_s: list[float] = field(default_factory=list)

    @property
    def capacity_per_s(self) -> float:
        """Median of the capacities; NaN without any."""
        return float(np.median(self.capacities_per_s)) if self.capacities_per_s else float("nan")


def describe_job(name: str) -> JobSpec:
    """Return the load job as the simulation knows it."""
    operators = (
        OperatorSpec(SOURCE, (), _AMPLE_PER_S, contention=0.0),
        OperatorSpec(ENRICH, (SOURCE,), PER_SUBTASK_PER_S, contention=0.0),
        OperatorSpec(AGGREGATE, (ENRICH,), _AMPLE_PER_S, contention=0.0, selectivity=1.0 / _EMIT_EVERY),
        OperatorSpec(SINK, (AGGREGATE,), _AMPLE_PER_S, contention=0.0),
    )
    return JobSpec(name, operators, slots_max=SLOTS_MAX, checkpoint_interval_s=3.0)


def assume_models(spec: JobSpec) -> JobModels:
    """Return what a training would have found: the operators' capacity within 5%, and the downtime."""
    curves = compute_true_curves(Workload(spec, 0, WINDOW_S, np.zeros((1, 1))), 0.05)
    selectivity = {one.name: one.selectivity for one in spec.operators}
    recovery = RecoveryModel(DOWNTIME_S, 1.0, 4 * DOWNTIME_S, 2.0, 3.0, 5)
    return JobModels(curves, selectivity, recovery, LatencyModel(np.zeros(0), np.zeros(0)))


def set_planner() -> Planner:
    """Return the planner's settings that policies read."""
    return Planner(horizon_h=1, bin_s=3600)


def find_step(elapsed_s: float) -> int | None:
    """Return the number of the load step at a time; None after the last."""
    for number, (_, seconds) in enumerate(STEPS):
        if elapsed_s < seconds:
            return number
        elapsed_s -= seconds
    return None


def find_sufficient() -> list[int]:
    """Return the smallest parallelism of ``enrich`` for each step."""
    return [int(np.ceil(rate / PER_SUBTASK_PER_S)) for rate, _ in STEPS]
