"""Failures of replayed jobs: when they come, how long a job is then down, and from where it replays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab.replay.arrivals import Arrivals
from lab.replay.conditions import DecisionSchedule, Disturbances
from lab.replay.random_draws import RandomDraws
from lab.replay.row_states import RowStates, StepPath
from models.arrays import Bools, Floats, Ints
from models.bundle.job_models import EventKind

_ROUNDED_S = 1e-6  # a checkpoint is completed just when it begins a rescale


@dataclass(frozen=True, slots=True)
class Downtime:
    """One downtime of one row; seconds since the start of the run.

    ``checkpoint_age_s`` is NaN of a rescale: a replay does not say which checkpoint it goes on from.
    """

    kind: EventKind
    at_s: float
    downtime_s: float
    checkpoint_age_s: float


@dataclass(frozen=True, slots=True)
class DrawnFailure:
    """A failure that a seed has drawn, or a stop for a rescale; seconds since the start of the run."""

    at_s: float
    downtime_s: float
    kind: EventKind = "restart"


class FailureModel:
    """Fails rows at the times that their seeds have drawn.

    Args:
        draws: of each seed.
        seed_of_row: (J,) index into the draws.
        arrivals: of the run.
        cadence, disturbances: see ``conditions``.
    """

    def __init__(
        self,
        draws: Sequence[RandomDraws],
        seed_of_row: Ints,
        arrivals: Arrivals,
        cadence: DecisionSchedule,
        disturbances: Disturbances,
    ) -> None:
        self._seed_of_row, self._arrivals = seed_of_row, arrivals
        self._cadence, self._disturbances = cadence, disturbances
        self._by_window: list[dict[int, list[DrawnFailure]]] = []
        for one in draws:
            by_window: dict[int, list[DrawnFailure]] = {}
            for at_s, downtime_s in zip(one.failure_at_s.tolist(), one.failure_downtime_s.tolist(), strict=True):
                by_window.setdefault(int(at_s // cadence.window_s), []).append(DrawnFailure(at_s, downtime_s))
            self._by_window.append(by_window)

    def find_rows(self, window: int) -> Bools:
        """Return (J,) which rows fail in a window."""
        return np.array([window in by_window for by_window in self._by_window], bool)[self._seed_of_row]

    def find_steps(self, window: int, rows: Ints) -> dict[int, list[tuple[int, DrawnFailure]]]:
        """Return step of the window -> (place in ``rows``, failure) of every failure of these rows."""
        result: dict[int, list[tuple[int, DrawnFailure]]] = {}
        for place, row in enumerate(rows.tolist()):
            for failure in self._by_window[int(self._seed_of_row[row])].get(window, ()):
                step = int(failure.at_s // self._cadence.step_s) - window * self._cadence.steps
                result.setdefault(step, []).append((place, failure))
        return result

    def compute_down_share(self, window: int, from_s: Floats, until_s: Floats) -> Floats:
        """Return (n, K) the share of each step of a window in which rows with (n,) downtimes are down."""
        step_s, steps = self._cadence.step_s, self._cadence.steps
        starts_s = step_s * (window * steps + np.arange(steps))
        down_s = np.minimum(until_s[:, None], starts_s + step_s) - np.maximum(from_s[:, None], starts_s)
        return np.asarray(np.clip(down_s, 0.0, step_s) / step_s)

    def fail(
        self, failure: DrawnFailure, states: RowStates, row: int, path: StepPath, place: int, *, window: int, step: int
    ) -> Downtime | None:
        """Fail or stop one job within a step: it is down and replays from its last completed checkpoint.

        A job that is down already does not fail again: None.

        Args:
            failure: what happens.
            states: of all rows, updated in place.
            row: the one that fails.
            path: steps of the window, filled before ``step``, updated in place.
            place: of the row in the path.
            window: when.
            step: of the window.
        """
        if failure.at_s < states.down_until[row]:
            return None
        began = window * self._cadence.steps
        processed = self._arrivals.total[began : began + step + 1] - path.backlog[place, : step + 1]
        restored, age_s = self._find_restored(failure.at_s, states, row, processed, window)
        path.backlog[place, step] += np.maximum(processed[-1] - restored, 0.0)
        states.restored[row] = np.minimum(restored, processed[-1])
        until_s = failure.at_s + failure.downtime_s
        # What was done in this step before the failure is lost, so the whole step counts as downtime.
        step_begins_s = self._arrivals.step_ends_s[began + step]
        down = self.compute_down_share(window, np.array([step_begins_s]), np.array([until_s]))
        path.up[place] = np.maximum(path.up[place] - down[0], 0.0)
        states.down_from[row], states.down_until[row] = failure.at_s, until_s
        return Downtime(
            failure.kind, failure.at_s, failure.downtime_s, math.nan if failure.kind == "rescale" else age_s
        )

    def _find_restored(
        self, failed_s: float, states: RowStates, row: int, processed: Floats, window: int
    ) -> tuple[Floats, float]:
        """Return the (S,) records processed in the state that a failed job restores, and its age in seconds.

        Before the first checkpoint is complete, it is the state with which the job began to run.

        Args:
            failed_s: when, seconds since the start.
            states: of all rows.
            row: the one that failed.
            processed: (k + 1, S) records processed at the ends of this window's steps so far, the beginning first.
            window: number of the window.
        """
        interval_s, duration_s = self._disturbances.checkpoint_interval_s, self._disturbances.checkpoint_duration_s
        age_s = failed_s - max(float(states.down_until[row]), 0.0)
        completed = (age_s - duration_s + _ROUNDED_S) // interval_s
        if completed < 1:
            return states.restored[row], age_s
        age_s -= completed * interval_s
        began, steps = window * self._cadence.steps, len(states.recent[row]) - 1
        ends_s = self._arrivals.step_ends_s[max(began - steps, 0) : began + len(processed)]
        known = np.concatenate([states.recent[row, :-1], processed])[-len(ends_s) :]
        return np.array([np.interp(failed_s - age_s, ends_s, of_source) for of_source in known.T]), age_s
