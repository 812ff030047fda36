"""A job with its history, and the conditions under which it is replayed: the pipeline's own settings and prices."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import numpy as np

from include.domain.graph import JobGraph
from include.settings import Planner, Settings
from include.utc import DAY_S
from lab.replay.conditions import Conditions, DecisionSchedule, Disturbances, Prices
from models.arrays import Floats
from models.bundle.job_models import JobModels, RecoveryModel

# Coarser steps than the replay of traces, since a fleet is compared; costs of a job's week differ by up to 2%.
CADENCE = DecisionSchedule(step_s=30)
BIN_S = CADENCE.window_s
DAY_BINS = DAY_S // BIN_S
HOUR_BINS = 3600 // BIN_S


class HistoryError(ValueError):
    """A history too short to compare policies on; the message says how short."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A job and its history.

    Attributes:
        cluster, job: its names.
        graph, models: as the planner knows them.
        slots_max: most slots of the job.
        start_s: epoch seconds of the first bin, a multiple of :data:`BIN_S`.
        rates_per_s: (T, S) mean rate of each bin and source, without gaps, sources in the order of the graph.
    """

    cluster: str
    job: str
    graph: JobGraph
    models: JobModels
    slots_max: int
    start_s: int
    rates_per_s: Floats

    @property
    def key(self) -> str:
        """As settings name it."""
        return f"{self.cluster}/{self.job}"

    def seed(self, draw: str = "") -> int:
        """Return the seed of its failures and noise: the same whatever it is replayed for."""
        return zlib.crc32(f"{self.key}{draw}".encode())


def fit_disturbances(models: JobModels, planner: Planner) -> Disturbances:
    """Return what happens to a job's simulated replica: the champion's downtimes, the noise of its windows.

    What its changes wait for is what its settings say.
    """
    recovery, usual = models.recovery, Disturbances()
    noise = [curve.noise_share for curve in models.capacity.values() if np.isfinite(curve.noise_share)]
    return Disturbances(
        rescale_downtime_s=_fit_uniform(recovery.downtime_rescale_s, recovery.downtime_rescale_sd_s),
        failures_per_day=round(planner.costs.failures_per_day),
        failure_downtime_s=max(recovery.downtime_restart_s, 1.0),
        failure_downtime_sd=recovery.downtime_restart_sd_s / max(recovery.downtime_restart_s, 1.0),
        checkpoint_interval_s=_fit_interval_s(recovery, usual.checkpoint_duration_s),
        measurement_noise=float(np.median(noise)) if noise else usual.measurement_noise,
        waits_for_checkpoint=planner.timing.awaits_checkpoint,
        slots_wait_s=planner.timing.slots_wait_s,
    )


def _fit_uniform(mean_s: float, sd_s: float) -> tuple[float, float]:
    """Return the ends of the uniform law with a mean and a deviation, downtimes of a second at least."""
    reach_s = min(float(np.sqrt(3.0)) * sd_s, max(mean_s - 1.0, 0.0))
    return max(mean_s - reach_s, 1.0), max(mean_s + reach_s, 1.0)


def _fit_interval_s(recovery: RecoveryModel, duration_s: float) -> float:
    """Return the interval at which a failure finds its last checkpoint as old as the model expects."""
    return max(2.0 * (recovery.checkpoint_interval_s - duration_s), 1.0)


def build_conditions(subject: Subject, settings: Settings) -> Conditions:
    """Return the conditions of a job's replay: the pipeline's own settings and prices."""
    planner = settings.planner.for_job(subject.cluster, subject.job)
    costs, own = planner.costs, planner.policy_of(subject.cluster, subject.job)
    return Conditions(
        cadence=CADENCE,
        prices=Prices(costs.resource_weight, costs.late_weight, costs.rescale_weight, costs.late_after_s),
        disturbances=replace(
            fit_disturbances(subject.models, planner),
            taskmanager_slots=settings.cluster(subject.cluster).taskmanager_slots,
        ),
        planner=planner,
        training=settings.training,
        forecast=settings.forecast.model_copy(update={"bin_s": BIN_S}),
        limits=settings.limits,
        parameters={**settings.policies, own: settings.parameters_of(own, subject.key)},
    )
