"""Policies replayed on a job's own history, each learning from a cold start before the days that are scored."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from include.domain.graph import JobGraph
from include.settings import Settings
from include.utc import DAY_S
from models.backtest.forecasts import later_forecasts
from models.backtest.load import in_steps
from models.evaluation.candidate_policies import candidate_policies
from models.evaluation.conditions import Cadence, Disturbances, Prices
from models.evaluation.drivers import Driver, View
from models.evaluation.forecasts import Forecasts
from models.evaluation.replay_run import CandidatePolicy, Conditions, ReplayRun
from models.evaluation.scores import Score, score
from models.evaluation.workload import Workload
from models.job_models import JobModels, RecoveryModel
from models.scheduling.demand import SourceForecast
from models.simulation.simulated_replica import build_replica
from models.simulation.spec import FloatArray

# Coarser steps than the replay of traces, since a fleet is compared; costs of a job's week differ by up to 2%.
CADENCE = Cadence(step_s=30)
BIN_S = CADENCE.window_s
DAY_BINS = DAY_S // BIN_S
HOUR_BINS = 3600 // BIN_S
FLOOR = "clairvoyant"
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
    rates_per_s: FloatArray


@dataclass(frozen=True, slots=True)
class Spans:
    """How a history of T bins is used, in bins: ``before`` is only seen by forecasts, then comes the replay.

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
class Guarded:
    """A driver whose failure ends its own run alone: from then on it wishes for nothing.

    Attributes:
        driver: the driver.
        error: what it failed with.
    """

    driver: Driver[Any]
    error: str | None = None

    def first_memory(self) -> Any:
        """Return the driver's first memory."""
        return self.driver.first_memory()

    def tick(self, view: View, memory: Any) -> tuple[Any, Any]:
        """Return what the driver wants."""
        if self.error is not None:
            return None, memory
        try:
            return self.driver.tick(view, memory)
        except Exception as error:
            self.error = f"at epoch second {view.now_s}: {error!r}"
            return None, memory


class OwnHistory(ReplayRun):
    """A world whose forecasts know what came before it begins.

    Args:
        workload, candidate_policies, seeds, conditions: see :class:`ReplayRun`.
        before_per_s: (B, S) mean rates of the windows before the first.
    """

    def __init__(
        self,
        workload: Workload,
        candidate_policies: Sequence[CandidatePolicy],
        seeds: Sequence[int],
        conditions: Conditions,
        before_per_s: FloatArray,
    ) -> None:
        super().__init__(workload, candidate_policies, seeds, conditions)
        window_s = conditions.cadence.window_s
        self._before, self._options = len(before_per_s), conditions.forecast
        self._past_per_s, self._past_s = before_per_s, workload.start_s - self._before * window_s

    @cached_property
    def _informed(self) -> Forecasts:
        """Made when the first is asked for: not every policy looks at one."""
        return later_forecasts(
            self.graph.sources,
            self._past_s,
            np.concatenate([self._past_per_s, self.arrivals_per_s]),
            begin=self._before,
            every_s=self.setting.cadence.plan_every_s,
            options=self._options,
        )

    def forecast(self, ingested_s: int) -> SourceForecast | None:
        """Return the forecast from all windows up to a moment."""
        return self._informed.at(self._before + self.recorder.index(ingested_s))


def disturbances(models: JobModels, failures_per_day: float) -> Disturbances:
    """Return what happens to a job's twin: the champion's downtimes, and windows that waver as the job's own do."""
    recovery, usual = models.recovery, Disturbances()
    noise = [curve.noise_share for curve in models.capacity.values() if np.isfinite(curve.noise_share)]
    return Disturbances(
        rescale_downtime_s=_uniform(recovery.downtime_rescale_s, recovery.downtime_rescale_sd_s),
        failures_per_day=round(failures_per_day),
        failure_downtime_s=max(recovery.downtime_restart_s, 1.0),
        failure_downtime_sd=recovery.downtime_restart_sd_s / max(recovery.downtime_restart_s, 1.0),
        checkpoint_interval_s=_interval_s(recovery, usual.checkpoint_duration_s),
        measurement_noise=float(np.median(noise)) if noise else usual.measurement_noise,
    )


def _uniform(mean_s: float, sd_s: float) -> tuple[float, float]:
    """Return the ends of the uniform law with a mean and a deviation, downtimes of a second at least."""
    reach_s = min(float(np.sqrt(3.0)) * sd_s, max(mean_s - 1.0, 0.0))
    return max(mean_s - reach_s, 1.0), max(mean_s + reach_s, 1.0)


def _interval_s(recovery: RecoveryModel, duration_s: float) -> float:
    """Return the interval at which a failure finds its last checkpoint as old as the model expects."""
    return max(2.0 * (recovery.checkpoint_interval_s - duration_s), 1.0)


def conditions_of(subject: Subject, settings: Settings) -> Conditions:
    """Return the conditions of a job's replay: the pipeline's own settings and prices."""
    planner = settings.planner
    return Conditions(
        cadence=CADENCE,
        prices=Prices(planner.resource_weight, planner.late_weight, planner.rescale_weight, planner.late_after_s),
        around=disturbances(subject.models, planner.failures_per_day),
        planner=planner,
        training=settings.training,
        forecast=settings.forecast.model_copy(update={"bin_s": BIN_S}),
        apply=settings.apply,
    )


def compare(subject: Subject, policies: Sequence[str], settings: Settings) -> tuple[Spans, list[Result]]:
    """Replay policies on a job's history; a policy that fails has a result with its error.

    All of them meet the same failures and noise, drawn from a seed of the job's name.

    Args:
        subject: the job.
        policies: names of contenders.
        settings: of the pipeline.

    Raises:
        HistoryError: the history is too short.
        SpecError: the twin cannot be made, since no operator has a capacity model.
        ConditionsError: the settings' cadence cannot be replayed.
    """
    spans, conditions = Spans.of(subject.start_s, len(subject.rates_per_s), settings), conditions_of(subject, settings)
    spec = build_replica(subject.job, subject.graph, subject.models, subject.slots_max, settings.planner)
    begin_s = subject.start_s + spans.before * BIN_S
    steps = in_steps(subject.rates_per_s[spans.before :], BIN_S, conditions.cadence.step_s)
    workload = Workload(spec, begin_s, conditions.cadence.step_s, steps)
    made: dict[str, Guarded | str] = {}
    for name in policies:
        try:
            made[name] = Guarded(candidate_policies([name], workload, conditions)[0].driver)
        except Exception as error:
            made[name] = f"{error!r}"
    runs = [CandidatePolicy(name, one) for name, one in made.items() if isinstance(one, Guarded)]
    seed = zlib.crc32(f"{subject.cluster}/{subject.job}".encode())
    outcome = OwnHistory(workload, runs, [seed], conditions, subject.rates_per_s[: spans.before]).run()
    span = slice(spans.learning, spans.learning + spans.scored)
    results = []
    for name, one in made.items():
        failed = one.error if isinstance(one, Guarded) else one
        found = None
        if failed is None:
            found = score(
                outcome.ledger,
                outcome.names.index(name),
                span,
                window_s=BIN_S,
                slots_max=subject.slots_max,
                prices=conditions.prices,
            )
        results.append(Result(name, found, failed))
    return spans, results


def recommended(results: Sequence[Result], in_use: str, margin: float) -> str | None:
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
