"""What a candidate policy can know of its job at one tick, as it would from the tables, the models and the REST API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from include.domain.graph import JobGraph
from include.settings import Planner
from include.utc import DAY_S
from lab.replay.pipeline_state import LOOKS_KEPT, PipelineState
from models.bundle.job_models import JobModels
from models.policies.job_snapshot import Snapshot, draw_seed
from models.policies.observations import Observations
from models.policies.protocol import History
from models.scheduling.demand import SourceForecast
from models.scheduling.slot_bounds import SlotBounds


class TickSnapshot:
    """What the driver of a row may read at one tick; what is not read is not computed.

    Attributes:
        now_s: epoch seconds.
        plan_due: the plan DAG ran just before this tick.
    """

    def __init__(self, state: PipelineState, row: int, now_s: int, plan_due: bool) -> None:
        self._state, self._row = state, row
        self.now_s, self.plan_due = now_s, plan_due

    @property
    def graph(self) -> JobGraph:
        """The job."""
        return self._state.graph

    @property
    def seed(self) -> int:
        """The seed of the row: for what is known in hindsight; no policy asks for it."""
        return self._state.row_seeds[self._row]

    @property
    def slots_max(self) -> int:
        """Most slots that the job may have."""
        return self._state.setting.workload.spec.slots_max

    @property
    def options(self) -> Planner:
        """The planner's settings."""
        return self._state.options

    @cached_property
    def running(self) -> Mapping[str, int]:
        """Operator -> running parallelism; of a job that comes back, what it comes back with."""
        return dict(zip(self.graph.names, self._state.engine.rows.parallelism[self._row].tolist(), strict=True))

    @property
    def is_up(self) -> bool:
        """Whether the job runs."""
        return bool(self._state.engine.is_up[self._row])

    @property
    def running_since_s(self) -> float:
        """Epoch seconds since when the job runs, or at which it will run again; at first the replay's beginning."""
        downtimes = self._state.engine.downtimes[self._row]
        up_s = downtimes[-1].at_s + downtimes[-1].downtime_s if downtimes else 0.0
        return self._state.start_s + up_s

    @property
    def is_restarting(self) -> bool:
        """Whether the job failed and Flink has noticed: its adaptive scheduler takes new requirements meanwhile."""
        return self._state.engine.is_restarting(self._row)

    @property
    def load_per_s(self) -> Mapping[str, float]:
        """Source -> mean rate of the last window, what the REST API shows now; empty before the first window."""
        count = self._state.recorder.count
        if not count:
            return {}
        return dict(zip(self.graph.sources, self._state.arrivals_per_s[count - 1].tolist(), strict=True))

    @property
    def lag_s(self) -> float:
        """Age of the oldest unprocessed record as metrics tell: backlog over arrivals, of the worst source."""
        loads = np.array(list(self.load_per_s.values()), float)
        backlog = self._state.engine.rows.backlog[self._row]
        ages = np.divide(backlog, loads, out=np.zeros(len(backlog)), where=loads > 0) if len(loads) else np.zeros(1)
        return float(ages.max())

    @property
    def ingested_s(self) -> int:
        """Epoch seconds up to which the tables of the last plan hold windows."""
        return self._state.find_ingested_s(self.now_s)

    @property
    def trained_s(self) -> int | None:
        """Epoch seconds of the last nightly training; None before the first."""
        return self._state.find_trained_s(self.now_s)

    @property
    def models(self) -> JobModels | None:
        """As of the last training; None before the first that had anything to learn from."""
        return self._state.find_models(self._row, self.now_s)

    @property
    def forecast(self) -> SourceForecast | None:
        """Made from the windows up to the last full plan interval; None before there are any."""
        return self._state.find_forecast(self.ingested_s)

    @property
    def true_load(self) -> SourceForecast | None:
        """The load in place of its forecast, as if it were certain; after the replay's end as on its last day."""
        made, rates = self.forecast, self._state.arrivals_per_s
        if made is None:
            return None
        bins, day = len(next(iter(made.quantiles.values()))[0]), min(DAY_S // made.bin_s, len(rates))
        places = (made.start_s - self._state.start_s) // made.bin_s + np.arange(bins)
        known = np.where(places < len(rates), places, len(rates) - day + (places - len(rates)) % day)
        quantiles = {
            name: np.tile(rates[known, row], (len(made.quantiles[name]), 1))
            for row, name in enumerate(self.graph.sources)
        }
        return replace(made, quantiles=quantiles, fallback=None)

    @property
    def looks(self) -> Observations:
        """The latest windows from one poll to the next."""
        looks = self._state.looks
        return looks.observations(self._row, looks.count - LOOKS_KEPT, looks.count)

    def observations(self, hours: float, until_s: int | None = None) -> Observations:
        """Return the windows that ended within some hours before now, or before ``until_s``."""
        end_s = self.now_s if until_s is None else until_s
        recorder = self._state.recorder
        return recorder.observations(self._row, recorder.count_until(end_s - hours * 3600), recorder.count_until(end_s))

    def take(
        self, options: Planner, hours: float, until_s: int | None = None, *, reads_models: bool = False
    ) -> Snapshot:
        """Return the job as it is now.

        Args:
            options: the planner's settings.
            hours: of windows.
            until_s: end of the last window that is shown, epoch seconds; now if not given.
            reads_models: whether its models are wanted; else it has none.
        """
        return Snapshot(
            now_s=self.now_s,
            graph=self.graph,
            running=self.running,
            up=self.is_up,
            observations=self.observations(hours, until_s),
            slots_max=self.slots_max,
            options=options,
            restarting=self.is_restarting,
            models=self.models if reads_models else None,
            bounds=SlotBounds.of(self._state.conditions.schedules, self.now_s, self.now_s + DAY_S),
            taskmanager_slots=self._state.conditions.disturbances.taskmanager_slots,
            seed=draw_seed(self._state.name_job(self._row), self.now_s),
        )

    def history(self) -> History:
        """Return what a policy learns from by night: the windows up to the last training.

        Raises:
            LookupError: nothing was trained yet.
        """
        models, until_s = self.models, self.trained_s
        if models is None or until_s is None:
            raise LookupError("nothing was trained yet; read TickSnapshot.trained_s and .models first")
        observations = self.observations(24.0 * self._state.conditions.training.lookback_days, until_s)
        return History(until_s, self.graph, models, self.slots_max, self.options, observations)
