"""The end of a job's history, replayed on its simulated replica."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from include.settings import Settings
from lab.backtest.daily_costs import DailyCosts
from lab.backtest.subject import BIN_S, Subject, build_conditions
from lab.replay.candidate_policies import CandidatePolicy, asks_in_restarts, build_candidates
from lab.replay.conditions import Conditions
from lab.replay.drivers import PolicyDriver, looks
from lab.replay.forecasts import LoadForecast
from lab.replay.pipeline_state import PipelineState
from lab.replay.rate_series import interpolate_steps
from lab.replay.replay_run import CandidateError, ReplayRun
from lab.replay.scores import WindowCosts
from lab.replay.tick_snapshot import TickSnapshot
from lab.replay.workload import Workload
from lab.simulation.simulated_replica import build_replica
from models.arrays import Floats, Ints
from models.bundle.job_models import JobModels
from models.forecasting.batch import default_registry

T = TypeVar("T")


@dataclass(slots=True)
class IsolatedDriver:
    """A driver whose failure ends its own run alone: from then on it asks for nothing.

    Attributes:
        driver: the driver.
        error: what it failed with.
    """

    driver: PolicyDriver[Any]
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


@dataclass(frozen=True, slots=True)
class StretchRun:
    """What each driver took; W windows, J rows.

    Attributes:
        ledger: of the windows, (W, J).
        rows: name -> its rows, a row per seed; drivers that could not be built have none.
        errors: name -> what a driver failed with.
        state: of the pipelines at the end.
    """

    ledger: WindowCosts
    rows: Mapping[Hashable, slice]
    errors: Mapping[Hashable, str]
    state: PipelineState

    def compute_days(self, name: Hashable, bins: slice) -> DailyCosts | None:
        """Return what each of the whole days in some bins took under a driver; None where it failed."""
        if name in self.errors:
            return None
        slots_max = self.state.setting.workload.spec.slots_max
        return DailyCosts.of(self.ledger, self.rows[name], bins, self.state.conditions, slots_max)

    def list_steps(self, name: Hashable) -> tuple[Ints, Ints]:
        """Return when the parallelism changed under a driver, with the first seed, epoch seconds, and what it was."""
        recorder, row = self.state.recorder, self.rows[name].start
        parallelism = recorder.stack(np.array([row], np.int64), 0, recorder.count)[1][:, 0]
        changes = np.concatenate([[0], np.flatnonzero((np.diff(parallelism, axis=0) != 0).any(axis=1)) + 1])
        return self.state.start_s + changes * BIN_S, parallelism[changes]


@dataclass(frozen=True, slots=True)
class Stretch:
    """The end of a job's history on a replica of the job.

    Attributes:
        subject: the job, of whose models the replica is made.
        before: bins of the history before the stretch, which forecasts know.
        workload: the load on the replica.
        conditions: of every run.
    """

    subject: Subject
    before: int
    workload: Workload
    conditions: Conditions

    @classmethod
    def of(cls, subject: Subject, before: int, settings: Settings, failure_s: Floats | None = None) -> Stretch:
        """Return the stretch from a bin to the end of the history.

        Args:
            subject: the job.
            before: the bin.
            settings: of the pipeline.
            failure_s: epoch seconds of the failures that happened, in the place of drawn ones; None: drawn.

        Raises:
            SpecError: the replica cannot be built, since no operator has a capacity model.
            ConditionsError: the settings' cadence cannot be replayed.
        """
        conditions, start_s = build_conditions(subject, settings), subject.start_s + before * BIN_S
        if failure_s is not None:
            happened = tuple(float(at_s) - start_s for at_s in failure_s if at_s >= start_s)
            conditions = replace(conditions, disturbances=replace(conditions.disturbances, failure_at_s=happened))
        spec = build_replica(subject.job, subject.graph, subject.models, subject.slots_max, settings.planner)
        steps = interpolate_steps(subject.rates_per_s[before:], BIN_S, conditions.cadence.step_s)
        return cls(subject, before, Workload(spec, start_s, conditions.cadence.step_s, steps), conditions)

    def isolate(self, name: str) -> IsolatedDriver | str:
        """Return the driver of a policy, or the error with which it cannot be built."""
        try:
            return IsolatedDriver(build_candidates([name], self.workload, self.conditions)[0].driver)
        except Exception as error:
            return f"{error!r}"

    def replay(
        self,
        drivers: Mapping[Any, IsolatedDriver | str],
        seeds: Sequence[int],
        *,
        forecasts: LoadForecast | None = None,
        given_models: Sequence[JobModels] = (),
    ) -> StretchRun:
        """Run drivers side by side; one that fails has an error and the rows of a job that asks for nothing.

        Deviation: forecasts are made without the global model, which would be fitted again for every day and source
        and take a third of the time of a backtest; the other methods compete and are calibrated as in the forecast
        stage.

        Args:
            drivers: name -> driver, or the error with which it cannot be built.
            seeds: of failures and noise; each driver runs once with each.
            forecasts: of another run of the same load, instead of new ones.
            given_models: of each driver, which has them from the beginning and trains none; empty: all train.

        Raises:
            CandidateError: none of them could be built.
        """
        built = {name: one for name, one in drivers.items() if not isinstance(one, str)}
        if not built:
            raise CandidateError("; ".join(f"{name}: {error}" for name, error in drivers.items()))
        run = ReplayRun(
            self.workload,
            [CandidatePolicy(str(name), one, asks_in_restarts(one.driver)) for name, one in built.items()],
            seeds,
            self.conditions,
            past_per_s=self.subject.rates_per_s[: self.before],
            forecast_methods=default_registry(),
            given_models=given_models,
            forecasts=forecasts,
        )
        ledger = run.run().ledger
        rows = {name: slice(place * len(seeds), (place + 1) * len(seeds)) for place, name in enumerate(built)}
        errors = {name: one if isinstance(one, str) else one.error for name, one in drivers.items()}
        return StretchRun(ledger, rows, {name: error for name, error in errors.items() if error}, run.state)
