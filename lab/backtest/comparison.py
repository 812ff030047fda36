"""Policies replayed on a job's own history, each learning from a cold start before the days that are scored."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from include.domain.graph import JobGraph
from include.settings import Planner, Settings
from include.utc import DAY_S
from lab.replay.candidate_policies import CandidatePolicy, asks_in_restarts, build_candidates
from lab.replay.conditions import Cadence, Conditions, Disturbances, Prices
from lab.replay.drivers import Driver, looks
from lab.replay.rate_series import interpolate_steps
from lab.replay.replay_run import ReplayResult, ReplayRun
from lab.replay.scores import Score, compute_score
from lab.replay.tick_snapshot import TickSnapshot
from lab.replay.workload import Workload
from lab.simulation.simulated_replica import build_replica
from models.arrays import Floats
from models.bundle.job_models import JobModels, RecoveryModel
from models.forecasting.batch import default_registry

# Coarser steps than the replay of traces, since a fleet is compared; costs of a job's week differ by up to 2%.
CADENCE = Cadence(step_s=30)
BIN_S = CADENCE.window_s
DAY_BINS = DAY_S // BIN_S
HOUR_BINS = 3600 // BIN_S
FLOOR = "clairvoyant"
T = TypeVar("T")
# What every job is compared with: no policies that one could choose.
REFERENCES = ("static_max", FLOOR)


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


@dataclass(frozen=True, slots=True)
class Spans:
    """How a history of T bins is used, in bins: ``before`` is only known to forecasts, then comes the replay.

    Attributes:
        before: what forecasts know when the replay begins.
        learning: replayed, not scored.
        scored: replayed and scored, to the end of the history.
    """

    before: int
    learning: int
    scored: int

    @classmethod
    def of(cls, start_s: int, bins: int, settings: Settings) -> Spans:
        """Divide a history; a short one gives a third of itself to learning, and scores the rest.

        The replay begins on a full hour.

        Raises:
            HistoryError: it is shorter than ``backtest.history_days_min``.
        """
        options = settings.backtest
        if bins < options.history_days_min * DAY_BINS:
            raise HistoryError(
                f"{bins / DAY_BINS:.1f} days of history are too short to compare policies: "
                f"{options.history_days_min:g} are needed (backtest.history_days_min)"
            )
        learning = min(round(options.learning_days * DAY_BINS), bins // 3)
        replayed = min(bins, learning + options.days * DAY_BINS)
        before = bins - replayed
        before += -(start_s // BIN_S + before) % HOUR_BINS
        return cls(before, learning, bins - before - learning)


@dataclass(frozen=True, slots=True)
class Result:
    """What the scored days would have cost under one policy; no score where it failed."""

    policy: str
    score: Score | None
    error: str | None = None


@dataclass(slots=True)
class IsolatedDriver:
    """A driver whose failure ends its own run alone: from then on it asks for nothing.

    Attributes:
        driver: the driver.
        error: what it failed with.
    """

    driver: Driver[Any]
    error: str | None = None

    def first_memory(self) -> Any:
        """Return the driver's first memory."""
        return self.driver.first_memory()

    def tick(self, snapshot: TickSnapshot, memory: Any) -> tuple[Any, Any]:
        """Return what the driver wants."""
        nothing: tuple[Mapping[str, int] | None, Any] = (None, memory)
        return self._isolate(snapshot, lambda: self.driver.tick(snapshot, memory), nothing)

    def look(self, snapshot: TickSnapshot, memory: Any) -> Mapping[str, int] | None:
        """Return what the driver wants between two ticks."""
        driver = self.driver
        return self._isolate(snapshot, lambda: driver.look(snapshot, memory), None) if looks(driver) else None

    def _isolate(self, snapshot: TickSnapshot, decide: Callable[[], T], otherwise: T) -> T:
        try:
            return otherwise if self.error is not None else decide()
        except Exception as error:
            self.error = f"at epoch second {snapshot.now_s}: {error!r}"
            return otherwise


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
    of_job = settings.parameters_of(own, f"{subject.cluster}/{subject.job}")
    return Conditions(
        cadence=CADENCE,
        prices=Prices(costs.resource_weight, costs.late_weight, costs.rescale_weight, costs.late_after_s),
        disturbances=replace(
            fit_disturbances(subject.models, planner),
            taskmanager_slots=settings.taskmanager_slots.get(subject.cluster, 1),
        ),
        planner=planner,
        training=settings.training,
        forecast=settings.forecast.model_copy(update={"bin_s": BIN_S}),
        limits=settings.limits,
        parameters={**settings.policies, own: of_job},
    )


def compare(subject: Subject, policies: Sequence[str], settings: Settings) -> tuple[Spans, list[Result]]:
    """Replay policies on a job's history; a policy that fails has a result with its error.

    All of them meet the same failures and noise, drawn from a seed of the job's name.  Deviation: forecasts are made
    without the global model, which would be fitted again for every day and source and take a third of the time of a
    backtest; the other methods compete and are calibrated as in the forecast stage.

    Args:
        subject: the job.
        policies: names of candidate policies.
        settings: of the pipeline.

    Raises:
        HistoryError: the history is too short.
        SpecError: the replica cannot be built, since no operator has a capacity model.
        ConditionsError: the settings' cadence cannot be replayed.
    """
    spans = Spans.of(subject.start_s, len(subject.rates_per_s), settings)
    conditions = build_conditions(subject, settings)
    spec = build_replica(subject.job, subject.graph, subject.models, subject.slots_max, settings.planner)
    steps = interpolate_steps(subject.rates_per_s[spans.before :], BIN_S, conditions.cadence.step_s)
    workload = Workload(spec, subject.start_s + spans.before * BIN_S, conditions.cadence.step_s, steps)
    drivers = {name: isolate(name, workload, conditions) for name in policies}
    run = ReplayRun(
        workload,
        [
            CandidatePolicy(name, one, asks_in_restarts(one.driver))
            for name, one in drivers.items()
            if isinstance(one, IsolatedDriver)
        ],
        [zlib.crc32(f"{subject.cluster}/{subject.job}".encode())],
        conditions,
        past_per_s=subject.rates_per_s[: spans.before],
        forecast_methods=default_registry(),
    )
    result = run.run()
    results = []
    for name, one in drivers.items():
        error = one.error if isinstance(one, IsolatedDriver) else one
        scored = None if error else _score(result, name, spans, subject.slots_max, conditions.prices)
        results.append(Result(name, scored, error))
    return spans, results


def isolate(name: str, workload: Workload, conditions: Conditions) -> IsolatedDriver | str:
    """Return the driver of a policy, or the error with which it cannot be built."""
    try:
        return IsolatedDriver(build_candidates([name], workload, conditions)[0].driver)
    except Exception as error:
        return f"{error!r}"


def _score(result: ReplayResult, name: str, spans: Spans, slots_max: int, prices: Prices) -> Score:
    span = slice(spans.learning, spans.learning + spans.scored)
    row = result.names.index(name)
    return compute_score(result.ledger, row, span, window_s=BIN_S, slots_max=slots_max, prices=prices)


def recommend(results: Sequence[Result], in_use: str, margin: float) -> str | None:
    """Return the cheapest policy; one in use keeps its place unless another is cheaper by more than a margin.

    Args:
        results: of one job; references and policies that failed are no candidates.
        in_use: name of the job's policy.
        margin: share of the cost in use that another must save.
    """
    costs = {one.policy: one.score.cost for one in results if one.score is not None and one.policy not in REFERENCES}
    if not costs:
        return None
    cheapest = min(costs, key=lambda name: costs[name])
    if in_use in costs and costs[cheapest] >= (1.0 - margin) * costs[in_use]:
        return in_use
    return cheapest
