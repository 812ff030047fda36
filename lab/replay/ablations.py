"""Ablations: the planner without one of its parts each, or with a fleet prior, to see what the part is worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from lab.policies.planner.controller_memory import ControllerMemory
from lab.policies.planner.planner_policy import PlannerPolicy
from lab.replay.hosted_driver import HostedDriver
from lab.scheduling.pending_steps import list_pending_steps
from models.bundle.job_models import RecoveryModel
from models.capacity.fleet_prior import FleetPrior
from models.capacity.partial_pooling import pool_models
from models.policies.protocol import Schedule, Situation
from models.scheduling.demand import LEVELS, MEDIAN

PLANNER = "planner"
FLEET = "planner_fleet"
_NEVER = float("inf")
_NO_RECOVERY = RecoveryModel(0.0, 0.0, 0.0, 0.0, 0.0, 0)


class WithoutUncertainty(PlannerPolicy):
    """Takes the median of the forecast and the expected capacity as certain."""

    def decide(self, situation: Situation, memory: ControllerMemory) -> tuple[Schedule, ControllerMemory]:
        """Return the plan for a situation without uncertainty; the bands of its steps stay those of the forecast."""
        forecast, models = situation.forecast, situation.models
        medians = {name: np.tile(values[MEDIAN], (len(LEVELS), 1)) for name, values in forecast.quantiles.items()}
        sure = {name: replace(one, sd_per_s=np.zeros_like(one.sd_per_s)) for name, one in models.capacity.items()}
        job = replace(situation.job, models=replace(models, capacity=sure))
        known = replace(situation, job=job, forecast=replace(forecast, quantiles=medians))
        made, after = super().decide(known, memory)
        return made, replace(after, due=list_pending_steps(made, forecast))


class WithoutRecovery(PlannerPolicy):
    """Assumes that rescales and failures last no time."""

    def decide(self, situation: Situation, memory: ControllerMemory) -> tuple[Schedule, ControllerMemory]:
        """Return the plan for a job that recovers in no time."""
        models = replace(situation.models, recovery=_NO_RECOVERY)
        return super().decide(replace(situation, job=replace(situation.job, models=models)), memory)


@dataclass(frozen=True)
class WithFleetPrior(PlannerPolicy):
    """Has a prior of how operators scale, as in the pipeline with ``planner.fleet_prior``.

    Attributes:
        prior: of the fleet.
    """

    prior: FleetPrior

    def decide(self, situation: Situation, memory: ControllerMemory) -> tuple[Schedule, ControllerMemory]:
        """Return the plan of a job whose hardly observed operators get the prior."""
        models = pool_models(situation.models, situation.graph, self.prior, situation.slots_max)
        return super().decide(replace(situation, job=replace(situation.job, models=models)), memory)


def _build_with_fleet_prior(fleet: FleetPrior | None) -> HostedDriver:
    if fleet is None:
        raise ValueError(f"{FLEET} needs a fleet prior: Conditions.fleet")
    return HostedDriver.of(PLANNER, WithFleetPrior(fleet))


def _with_settings(
    planner: PlannerPolicy | None = None, settings: Mapping[str, object] | None = None
) -> Callable[[FleetPrior | None], HostedDriver]:
    """Return a function that builds a planner with other settings; it ignores the fleet prior."""
    return lambda _: HostedDriver.of(PLANNER, planner or PlannerPolicy(), settings)


ABLATIONS: Mapping[str, Callable[[FleetPrior | None], HostedDriver]] = {
    "planner_no_uncertainty": _with_settings(WithoutUncertainty()),
    "planner_no_recovery": _with_settings(WithoutRecovery()),
    "planner_no_lead": _with_settings(settings={"timing.max_lead_s": 0}),
    "planner_no_margin": _with_settings(settings={"costs.rescale_margin": 1.0}),
    "planner_no_failure_margin": _with_settings(settings={"costs.failure_margin": 1.0}),
    "planner_no_restart_reaction": _with_settings(settings={"reactive.rescales_while_restarting": False}),
    "planner_no_overload_reaction": _with_settings(settings={"reactive.utilisation_max": _NEVER}),
    "planner_no_reactive": _with_settings(
        settings={"reactive.utilisation_max": _NEVER, "reactive.rescales_for_catch_up": False}
    ),
    FLEET: _build_with_fleet_prior,
}
"""Candidate policies that only run when named, built from the fleet prior."""
