"""One replay run: candidate policies with the same job, load and random draws, each with a pipeline of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from include.utc import DAY_S
from lab.replay.candidate_policies import CandidatePolicy
from lab.replay.conditions import Conditions
from lab.replay.drivers import looks
from lab.replay.forecasts import LoadForecast
from lab.replay.pipeline_state import PipelineState
from lab.replay.scores import WindowCosts
from lab.replay.tick_snapshot import TickSnapshot
from lab.replay.window_metrics import WindowMetrics
from lab.replay.workload import Workload
from models.arrays import Floats, Ints
from models.bundle.job_models import JobModels
from models.forecasting.base import Registry
from models.policies.tidewise.falling_behind import falls_behind


class CandidateError(RuntimeError):
    """A candidate's driver failed; the message says which, when, and with what."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """Result of a run of J rows: candidates x seeds.

    Attributes:
        names, seeds: (J,) of each row.
        ledger: what each window took.
        refused: (J,) requests that came while the job was down, while another one was waited for, or too soon after it.
        arrivals_per_s: (W, S).
    """

    names: tuple[str, ...]
    seeds: tuple[int, ...]
    ledger: WindowCosts
    refused: Ints
    arrivals_per_s: Floats


class ReplayRun:
    """Runs candidate policies.

    Args:
        workload: job and load.
        candidates: their names must differ.
        seeds: each candidate runs once with each.
        conditions: of the run.
        past_per_s, forecast_methods: what forecasts know of the time before and how they are made, see
            :class:`PipelineState`.
        forecasts: of another run of the same load, instead of new ones.
        given_models: of each candidate, which has them from the beginning and trains none; empty: all train.
    """

    def __init__(
        self,
        workload: Workload,
        candidates: Sequence[CandidatePolicy],
        seeds: Sequence[int],
        conditions: Conditions,
        *,
        past_per_s: Floats | None = None,
        forecast_methods: Registry | None = None,
        given_models: Sequence[JobModels] = (),
        forecasts: LoadForecast | None = None,
    ) -> None:
        self.state = PipelineState(
            workload,
            seeds,
            len(candidates),
            conditions,
            past_per_s=past_per_s,
            methods=forecast_methods,
            given=[models for models in given_models for _ in seeds],
            forecasts=forecasts,
        )
        self._candidates = [candidate for candidate in candidates for _ in seeds]
        self._memories = [candidate.driver.first_memory() for candidate in self._candidates]
        self._rescaled_s = np.full(len(self._candidates), -np.inf)
        self._refused = np.zeros(len(self._candidates), np.int64)

    def run(self, progress: Callable[[int], None] | None = None) -> ReplayResult:
        """Run from beginning to end.

        Args:
            progress: called after each day with the number of windows done.

        Raises:
            CandidateError: a driver raised.
        """
        state, cadence = self.state, self.state.conditions.cadence
        windows = state.setting.windows // cadence.looks
        ledger = WindowCosts.empty(windows, len(self._candidates))
        for window in range(windows):
            parts = []
            for look in range(cadence.looks):
                now_s = state.start_s + window * cadence.window_s + look * cadence.poll_s
                if look == 0 and now_s % cadence.tick_s == 0:
                    self._tick(now_s, ledger.rescales[window])
                elif look:
                    self._look(now_s, ledger.rescales[window])
                parts.append(state.engine.advance())
                state.looks.add(parts[-1])
            metrics = WindowMetrics.merge(parts)
            state.recorder.add(metrics)
            ledger.enter(window, metrics)
            end_s = (window + 1) * cadence.window_s
            if progress is not None and (end_s % DAY_S == 0 or window == windows - 1):
                progress(window + 1)
        return ReplayResult(
            names=tuple(candidate.name for candidate in self._candidates),
            seeds=state.row_seeds,
            ledger=ledger,
            refused=self._refused,
            arrivals_per_s=state.arrivals_per_s,
        )

    def _tick(self, now_s: int, rescales: Ints) -> None:
        """Ask the driver of every row and rescale where the rules of the controller allow it."""
        cadence = self.state.conditions.cadence
        plan_due = (now_s - cadence.plan_after_s) % cadence.plan_every_s == 0
        for row, candidate in enumerate(self._candidates):
            snapshot = TickSnapshot(self.state, row, now_s, plan_due)
            with self._naming(row, candidate, now_s):
                wanted, self._memories[row] = candidate.driver.tick(snapshot, self._memories[row])
            self._ask(row, candidate, snapshot, wanted, rescales)

    def _look(self, now_s: int, rescales: Ints) -> None:
        """Ask between two ticks the drivers that look at each poll."""
        for row, candidate in enumerate(self._candidates):
            if looks(candidate.driver):
                snapshot = TickSnapshot(self.state, row, now_s, plan_due=False)
                with self._naming(row, candidate, now_s):
                    wanted = candidate.driver.look(snapshot, self._memories[row])
                self._ask(row, candidate, snapshot, wanted, rescales)

    @contextmanager
    def _naming(self, row: int, candidate: CandidatePolicy, now_s: int) -> Iterator[None]:
        """Say which candidate failed, and when."""
        try:
            yield
        except Exception as error:
            when = f"day {(now_s - self.state.start_s) / DAY_S:.3f} (epoch second {now_s})"
            raise CandidateError(f"{candidate.name}, {self.state.name_job(row)}, {when}: {error!r}") from error

    def _ask(
        self,
        row: int,
        candidate: CandidatePolicy,
        snapshot: TickSnapshot,
        wanted: Mapping[str, int] | None,
        rescales: Ints,
    ) -> None:
        """Rescale a row where the rules of the controller allow it."""
        state, now_s = self.state, snapshot.now_s
        target = None if wanted is None else self._clip_target(row, wanted)
        if target is None:
            return
        is_reached = snapshot.is_up or (candidate.asks_in_restarts and snapshot.is_restarting)
        is_reached &= not state.engine.is_waiting(row)
        cooled_s = self._rescaled_s[row] + state.conditions.limits.cooldown_s
        is_rise = target.max() > state.engine.rows.parallelism[row].max()
        if not is_reached or (now_s < cooled_s and not (is_rise and self._falls_behind(snapshot))):
            self._refused[row] += 1
            return
        state.engine.rescale(row, target)
        self._rescaled_s[row] = now_s
        rescales[row] += 1

    @staticmethod
    def _falls_behind(snapshot: TickSnapshot) -> bool:
        return falls_behind(replace(snapshot.take(snapshot.options, 0.0), observations=snapshot.looks))

    def _clip_target(self, row: int, wanted: Mapping[str, int]) -> Ints | None:
        """Return the admissible (O,) parallelism nearest to the wanted; None for the running one."""
        current = self.state.engine.rows.parallelism[row]
        names = self.state.graph.names
        target = np.array([wanted.get(name, count) for name, count in zip(names, current, strict=True)])
        target = np.clip(target, 1, self.state.limits).astype(np.int64)
        return None if (target == current).all() else target
