"""What the pipeline would know of each row at a time: its windows, the last night's models, the last forecast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from include.utc import DAY_S
from lab.replay.conditions import Conditions
from lab.replay.engine import Engine, EngineSetting
from lab.replay.forecasts import LoadForecast
from lab.replay.random_draws import RandomDraws
from lab.replay.row_histories import build_history, list_events
from lab.replay.train_alone import find_first_s, train_alone
from lab.replay.window_recorder import WindowRecorder
from lab.replay.workload import Workload, find_limits, find_sufficient
from models.arrays import Floats, Ints
from models.bundle.job_models import JobModels
from models.forecasting.base import Registry
from models.scheduling.demand import SourceForecast
from models.training.job_tests import find_since

# Utilisation in the first hour at the parallelism with which all rows begin.
FIRST_UTILISATION = 0.7
# What the controller keeps of polls: those of the last quarter of an hour.
LOOKS_KEPT = 15
# Schedules.train of the settings: 02:30 UTC.
TRAIN_AT_S = 9000


def find_first_parallelism(workload: Workload) -> Ints:
    """Return the (O,) parallelism with which every job of a replay begins: enough for the load of its first hour."""
    first_hour = workload.rates_per_s[: 3600 // workload.step_s].mean(axis=0)
    return find_sufficient(workload.spec, first_hour, FIRST_UTILISATION)


class PipelineState:
    """Simulated jobs, one a row, with what a pipeline of its own would know of each.

    Args:
        workload: job and load.
        seeds: of the random draws.
        candidates: number of candidate policies; each has a row with every seed, J in all.
        conditions: of the run.
        options: the planner's settings.
        past_per_s: (B, S) mean rates of the windows before the first, which forecasts know; None without any.
        methods: of forecasting; None for those of the forecast stage.
        forecasts: of another run of the same load; None to make them.
        given: (J,) models of the rows, which then train none; empty: each row trains by night.

    Attributes:
        engine: the simulated jobs.
        recorder, looks: their windows, and those from one poll to the next.
        row_seeds: (J,) the seed of each row.
        graph, limits: of the job.
        arrivals_per_s: (W, S) mean rates of the windows.
        forecasts: what the hourly DAG would have made of them.
    """

    def __init__(
        self,
        workload: Workload,
        seeds: Sequence[int],
        candidates: int,
        conditions: Conditions,
        *,
        past_per_s: Floats | None = None,
        methods: Registry | None = None,
        given: Sequence[JobModels] = (),
        forecasts: LoadForecast | None = None,
    ) -> None:
        self.options = conditions.options
        self.conditions, self.row_seeds = conditions, tuple(seeds) * candidates
        self._given = tuple(given)
        cadence, spec = conditions.cadence, workload.spec
        windows, width = len(workload.rates_per_s) // cadence.steps, len(spec.operators)
        draws = [
            RandomDraws.from_seed(seed, windows, width, cadence, conditions.disturbances).repeat(cadence.looks)
            for seed in seeds
        ]
        by_look, lag_target_s = cadence.by_look(), conditions.prices.lag_target_s
        self.setting = EngineSetting(workload, by_look, conditions.disturbances, draws, lag_target_s)
        self.graph, self.limits = spec.graph(), find_limits(spec)
        seed_of_row = np.tile(np.arange(len(seeds)), candidates)
        self.engine = Engine(self.setting, seed_of_row, find_first_parallelism(workload))
        self.arrivals_per_s = workload.compute_means(cadence.window_s)
        days = conditions.training.lookback_days
        self.recorder = self._open_recorder(workload, windows, days * DAY_S // cadence.window_s, cadence.window_s)
        self.looks = self._open_recorder(workload, self.setting.windows, LOOKS_KEPT, cadence.poll_s)
        past = np.zeros((0, len(self.graph.sources))) if past_per_s is None else past_per_s
        self._past = len(past)
        self.forecasts = forecasts or LoadForecast(
            self.graph.sources,
            workload.start_s - len(past) * cadence.window_s,
            np.concatenate([past, self.arrivals_per_s]),
            cadence.plan_every_s,
            conditions.forecast,
            begin=len(past),
            methods=methods,
            events=conditions.events,
        )
        self._trained: tuple[int, dict[int, JobModels | None]] = (0, {})
        self._previous: dict[int, JobModels | None] = {}  # of the night before, for rows that read models

    def _open_recorder(self, workload: Workload, windows: int, kept: int, window_s: int) -> WindowRecorder:
        is_source = np.array([operator.is_source for operator in self.graph.operators])
        target = np.full((windows, len(is_source)), np.nan)
        target[:, is_source] = workload.compute_means(window_s)[:windows]
        return WindowRecorder(
            (len(self.row_seeds), len(is_source)),
            kept=kept,
            windows=windows,
            start_s=workload.start_s,
            window_s=window_s,
            output_ratio=np.array(list(workload.spec.output_ratios.values())),
            target_per_s=target,
        )

    @property
    def start_s(self) -> int:
        """Epoch seconds of the beginning."""
        return self.setting.workload.start_s

    def name_job(self, row: int) -> str:
        """Return the name of a row's job: the same for all candidates of a seed, so that they draw the same."""
        return f"{self.setting.workload.spec.name}-{self.row_seeds[row]}"

    def find_ingested_s(self, now_s: int) -> int:
        """Return up to when, epoch seconds, the tables of the last plan hold windows."""
        cadence = self.conditions.cadence
        return (now_s - cadence.plan_after_s) // cadence.plan_every_s * cadence.plan_every_s

    def find_trained_s(self, now_s: int) -> int | None:
        """Return the epoch second of the last nightly training; None before the first."""
        at = (now_s - TRAIN_AT_S) // DAY_S * DAY_S + TRAIN_AT_S
        return at if at > self.start_s else None

    def find_forecast(self, ingested_s: int) -> SourceForecast | None:
        """Return the forecast from all windows up to a time, epoch seconds; None before there is any."""
        return self.forecasts.at(self._past + self.recorder.count_until(ingested_s))

    def find_models(self, row: int, now_s: int) -> JobModels | None:
        """Return a row's models of the last night, or those that it was given; only rows that ask are trained."""
        if self._given:
            return self._given[row]
        at = self.find_trained_s(now_s)
        if at is None:
            return None
        night, result = self._trained
        if night != at:
            self._previous = {**self._previous, **result}
            self._trained = (at, self._train(sorted({*self._previous, row}), at))
        elif row not in result:
            result.update(self._train([row], at))
        return self._trained[1][row]

    def _train(self, rows: Sequence[int], at_s: int) -> dict[int, JobModels | None]:
        """Train rows as the train stage does, each a fleet of its own whose model of the night before was taken.

        There is no gate: a night's model is used, whatever the one before is worth.
        """
        options = self.conditions.training
        last, lookback_s = self.recorder.count_until(at_s), options.lookback_days * DAY_S
        first = max(0, last - lookback_s // self.conditions.cadence.window_s)
        spec = self.setting.workload.spec
        histories = [
            build_history(self.name_job(row), self.graph, self.recorder.observations(row, first, last), spec.slots_max)
            for row in rows
        ]
        until_s = at_s - self.start_s
        events = [list_events(self.engine.downtimes[row], until_s - lookback_s, until_s) for row in rows]
        before = [None if self._previous.get(row) is None else float(at_s - DAY_S) for row in rows]
        since_s = [
            find_since(find_first_s(one.windows), at_s, champion_s, options)
            for one, champion_s in zip(histories, before, strict=True)
        ]
        models = train_alone(histories, events, options, at_s, since_s)
        return {row: self._previous.get(row) if one is None else one for row, one in zip(rows, models, strict=True)}
