"""One run: contenders with the same job, load and luck, each with what its own pipeline would have learnt so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from include.settings import Apply, Forecast, Planner, Training
from include.utc import DAY_S
from models.capacity.fleet_prior import FleetPrior
from models.evaluation.conditions import Cadence, Disturbances, Prices, RandomDraws
from models.evaluation.drivers import Driver, View, untrained
from models.evaluation.engine import Engine, Metrics, Setting
from models.evaluation.forecasts import Forecasts
from models.evaluation.learning import JobShape, train
from models.evaluation.recorder import Recorder
from models.evaluation.scores import Ledger
from models.evaluation.workload import Workload, limits, sufficient
from models.job_models import JobModels
from models.scheduling.demand import SourceForecast
from models.simulation.spec import FloatArray, IntArray

# Utilisation in the first hour at the parallelism with which all contenders begin.
FIRST_UTILISATION = 0.7
# Schedules.train of the settings: 02:30 UTC.
TRAIN_AT_S = 9000


class CandidateError(RuntimeError):
    """A contender's driver failed; the message says which, when, and with what."""


@dataclass(frozen=True, slots=True)
class CandidatePolicy:
    """A driver under a name.

    Attributes:
        name: of the contender.
        driver: its mind.
        asks_in_restarts: its wishes reach a job that restarts after a failure, as those of the safety net do; the
            apply stage refuses other steps for a job that does not run.
    """

    name: str
    driver: Driver[Any]
    asks_in_restarts: bool = False


@dataclass(frozen=True, slots=True)
class Conditions:
    """Everything that is the same for all contenders, besides the load.

    Attributes:
        cadence, prices, around: see ``conditions``.
        planner, training, forecast, apply: the pipeline's settings.
        fleet: what other jobs have taught, for contenders that ask for it by name; None without a fleet.
    """

    cadence: Cadence = field(default_factory=Cadence)
    prices: Prices = field(default_factory=Prices)
    around: Disturbances = field(default_factory=Disturbances)
    planner: Planner = field(default_factory=Planner)
    training: Training = field(default_factory=Training)
    forecast: Forecast = field(default_factory=Forecast)
    apply: Apply = field(default_factory=Apply)
    fleet: FleetPrior | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run's result, J = contenders x seeds.

    Attributes:
        names, seeds: (J,) of each row.
        ledger: what each window took.
        refused: (J,) wishes that came while the job was down or too soon after a rescale.
        arrivals_per_s: (W, S).
    """

    names: tuple[str, ...]
    seeds: tuple[int, ...]
    ledger: Ledger
    refused: IntArray
    arrivals_per_s: FloatArray


class ReplayRun:
    """Runs contenders.

    Args:
        workload: job and load.
        candidate_policies: names must differ.
        seeds: each contender runs once with each.
        conditions: of the run.
    """

    def __init__(
        self,
        workload: Workload,
        candidate_policies: Sequence[CandidatePolicy],
        seeds: Sequence[int],
        conditions: Conditions,
    ) -> None:
        cadence, spec = conditions.cadence, workload.spec
        windows, width = len(workload.rates_per_s) // cadence.steps, len(spec.operators)
        draws = [RandomDraws.drawn(seed, windows, width, cadence, conditions.around) for seed in seeds]
        self.setting = Setting(workload, cadence, conditions.around, draws, conditions.prices.lag_target_s)
        self.graph, self.limits = spec.graph(), limits(spec)
        self.options, self.untrained = conditions.planner, untrained(self.graph)
        self.training, self._conditions, self._seeds = conditions.training, conditions, tuple(seeds)
        self._contenders = [candidate for candidate in candidate_policies for _ in seeds]
        self._memories = [candidate.driver.first_memory() for candidate in self._contenders]
        of_row = np.tile(np.arange(len(seeds)), len(candidate_policies))
        hour = workload.rates_per_s[: 3600 // cadence.step_s].mean(axis=0)
        self.engine = Engine(self.setting, of_row, sufficient(spec, hour, FIRST_UTILISATION))
        self.arrivals_per_s = workload.means_per_s(cadence.window_s)  # (W, S)
        is_source = np.array([operator.is_source for operator in self.graph.operators])
        target = np.full((windows, width), np.nan)
        target[:, is_source] = self.arrivals_per_s
        self.recorder = Recorder(
            (len(of_row), width),
            kept=conditions.training.lookback_days * DAY_S // cadence.window_s,
            windows=windows,
            start_s=workload.start_s,
            window_s=cadence.window_s,
            selectivity=np.array([operator.selectivity for operator in spec.operators]),
            target_per_s=target,
        )
        self._shape = JobShape(self.graph.names, is_source, self.limits)
        self._forecasts = Forecasts(
            self.graph.sources, workload.start_s, self.arrivals_per_s, cadence.plan_every_s, conditions.forecast
        )
        self._trained: tuple[int, dict[int, JobModels | None]] = (0, {})
        self._previous: dict[int, JobModels | None] = {}  # of the night before, for those that read models
        self._rescaled_s = np.full(len(of_row), -np.inf)
        self._refused = np.zeros(len(of_row), np.int64)

    @property
    def start_s(self) -> int:
        """Epoch seconds of the beginning."""
        return self.setting.workload.start_s

    def name_of(self, row: int) -> str:
        """Return the name of a row's job: the same for all contenders, so that they draw the same."""
        return f"{self.setting.workload.spec.name}-{self._seeds[int(self.engine.seed_of_row[row])]}"

    def run(self, progress: Callable[[int], None] | None = None) -> Outcome:
        """Run from beginning to end.

        Args:
            progress: told after each day how many windows are done.

        Raises:
            CandidateError: a driver raised.
        """
        cadence, windows = self.setting.cadence, self.setting.windows
        ledger = Ledger.empty(windows, len(self._contenders))
        for window in range(windows):
            now_s = self.start_s + window * cadence.window_s
            if now_s % cadence.tick_s == 0:
                self._tick(now_s, ledger.rescales[window])
            metrics = self.engine.advance()
            self.recorder.add(metrics)
            _enter(ledger, window, metrics)
            ends_day = (now_s + cadence.window_s) % DAY_S == 0 or window == windows - 1
            if progress is not None and ends_day:
                progress(window + 1)
        return Outcome(
            names=tuple(candidate.name for candidate in self._contenders),
            seeds=tuple(self._seeds[place] for place in self.engine.seed_of_row.tolist()),
            ledger=ledger,
            refused=self._refused,
            arrivals_per_s=self.arrivals_per_s,
        )

    def _tick(self, now_s: int, rescales: IntArray) -> None:
        """Ask every contender and rescale where the rules of the apply stage allow it."""
        cadence = self.setting.cadence
        plan_due = (now_s - cadence.plan_after_s) % cadence.plan_every_s == 0
        for row, candidate in enumerate(self._contenders):
            view = View(self, row, now_s, plan_due)
            try:
                wanted, self._memories[row] = candidate.driver.tick(view, self._memories[row])
            except Exception as error:
                when = f"day {(now_s - self.start_s) / DAY_S:.3f} (epoch second {now_s})"
                raise CandidateError(f"{candidate.name}, {self.name_of(row)}, {when}: {error!r}") from error
            if wanted is None:
                continue
            current = self.engine.rows.parallelism[row]
            asked = np.array([wanted.get(name, count) for name, count in zip(self.graph.names, current, strict=True)])
            target = np.clip(asked, 1, self.limits).astype(np.int64)
            if (target == current).all():
                continue
            reached = view.up or (candidate.asks_in_restarts and view.restarting)
            if not reached or now_s - self._rescaled_s[row] < self._conditions.apply.cooldown_s:
                self._refused[row] += 1
                continue
            self.engine.rescale(row, target)
            self._rescaled_s[row] = now_s
            rescales[row] += 1

    def ingested_s(self, now_s: int) -> int:
        """Return up to when, epoch seconds, the tables of the last plan before a moment hold windows."""
        cadence = self.setting.cadence
        return (now_s - cadence.plan_after_s) // cadence.plan_every_s * cadence.plan_every_s

    def trained_s(self, now_s: int) -> int | None:
        """Return the epoch second of the last nightly training by a moment; None before the first."""
        at = (now_s - TRAIN_AT_S) // DAY_S * DAY_S + TRAIN_AT_S
        return at if at > self.start_s else None

    def forecast(self, ingested_s: int) -> SourceForecast | None:
        """Return the forecast from the windows up to a moment."""
        return self._forecasts.at(self.recorder.index(ingested_s))

    def models(self, row: int, now_s: int) -> JobModels | None:
        """Return a contender's models of the last night; only contenders that ask are trained."""
        at = self.trained_s(now_s)
        if at is None:
            return None
        night, found = self._trained
        if night != at:
            self._previous = {**self._previous, **found}
            self._trained = (at, self._train(sorted({*self._previous, row}), at))
        elif row not in found:
            found.update(self._train([row], at))
        return self._trained[1][row]

    def _train(self, rows: Sequence[int], at_s: int) -> dict[int, JobModels | None]:
        window_s = self.setting.cadence.window_s
        last = self.recorder.index(at_s)
        lookback = self.training.lookback_days * DAY_S // window_s
        models = train(
            self._shape,
            self.recorder,
            np.array(rows, np.int64),
            (max(0, last - lookback), last),
            epoch_window=self.start_s // window_s,
            events=[self.engine.events[row] for row in rows],
            before_s=float(at_s - self.start_s),
            options=self.training,
            previous=[self._previous.get(row) for row in rows],
        )
        return dict(zip(rows, models, strict=True))


def _enter(ledger: Ledger, window: int, metrics: Metrics) -> None:
    ledger.slots[window] = metrics.parallelism.max(axis=1)
    ledger.late_s[window] = metrics.late_s
    ledger.lag_record_s[window] = metrics.lag_record_s
