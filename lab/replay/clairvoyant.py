"""The lower bound of every comparison: the planner's optimisation with the true load and the true capacities."""

from __future__ import annotations

from typing import Final

import numpy as np

from include.settings import Planner
from lab.replay.conditions import Disturbances
from lab.replay.workload import Workload, compute_curves, find_limits, find_sufficient
from lab.scheduling.cost_model import CurrentState, compute_costs
from lab.scheduling.planner_settings import PlannerSettings
from models.arrays import Floats, Ints
from models.bundle.job_models import CapacityCurve, RecoveryModel
from models.scheduling.candidates import list_candidates
from models.scheduling.demand import LEVELS, SourceForecast, demand
from models.scheduling.expectation import Outlook
from models.scheduling.need import job_bounds
from models.scheduling.shortest_path import find_shortest_paths

_DISTURBANCES = Disturbances()
# No reactive controller comes after it; it will save what it expects to save; it knows which bins follow an excess.
_CERTAIN: Final = {
    "reactive.rescales_for_catch_up": False,
    "costs.rescale_margin": 1.0,
    "costs.failure_margin": 1.0,
    "costs.overload_tolerance": 0.02,
}


def solve_clairvoyant(
    job: Workload, rates_per_s: Floats, options: Planner, disturbances: Disturbances = _DISTURBANCES
) -> tuple[Ints, Ints]:
    """Return the schedule of a planner that knows everything but when the job will fail.

    It is solved at once over the whole time, a bin per window.  What an operator really processes varies; only the
    deviation is known.

    Args:
        job: the true job.
        rates_per_s: (W, S) true mean rate of every window.
        options: the planner's settings.
        disturbances: failures and rescales.

    Returns:
        (n,) epoch seconds and (n, O) parallelism from each of them on.
    """
    spec, graph = job.spec, job.spec.graph()
    window_s = len(job.rates_per_s) * job.step_s // len(rates_per_s)
    known = PlannerSettings.of(options).with_values(
        {"bin_s": window_s, "costs.failures_per_day": float(disturbances.failures_per_day), **_CERTAIN}
    )
    quantiles = {name: np.tile(rates_per_s[:, place], (len(LEVELS), 1)) for place, name in enumerate(graph.sources)}
    asked = demand(graph, spec.edge_ratios, SourceForecast(job.start_s, window_s, quantiles))
    bounds = job_bounds(graph, compute_true_curves(job, disturbances.capacity_noise), find_limits(spec), known)
    downtime_s = float(np.mean(disturbances.rescale_downtime_s))
    # A failure finds the last checkpoint half an interval old, and one under way is lost.
    replay_s = disturbances.checkpoint_interval_s / 2 + disturbances.checkpoint_duration_s
    recovery = RecoveryModel(downtime_s, 0.0, disturbances.failure_downtime_s, 0.0, replay_s, 0)
    outlook = Outlook(asked, bounds, recovery, known.capacity.lower_bound_z)
    begin = find_sufficient(spec, rates_per_s[0], known.capacity.target_utilisation)
    result = list_candidates(asked, bounds, begin, find_limits(spec))
    costs = compute_costs(outlook, result, CurrentState(job.start_s, spec.slots_max, 0.0), known)
    path = find_shortest_paths(costs.cost_per_bin()[None], costs.switch[None], np.zeros(1, np.int64)).choice[0]
    changes = np.concatenate([[0], np.flatnonzero(np.diff(path)) + 1])
    return job.start_s + changes * window_s, result[path[changes]]


def compute_true_curves(job: Workload, noise: float) -> dict[str, CapacityCurve]:
    """Return operator -> its true capacity, with the deviation of what it processes at a time."""
    p = np.arange(1, job.spec.slots_max + 1)
    result = {}
    for operator, curve in zip(job.spec.operators, compute_curves(job.spec), strict=True):
        mean = np.maximum(curve[1:], 1e-9)
        result[operator.name] = CapacityCurve(p, mean, noise * mean, p, mean, float(mean[0]))
    return result
