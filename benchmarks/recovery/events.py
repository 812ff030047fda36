"""What polls tell of the restarts of a simulated job, as the pipeline reads it from them, without raw files between.


What followed a restart is told by the function that ingestion calls (models/observing/catch_ups.py), and capacities are
learnt by that of training (models/training); here both are asked on the samples of the simulator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from include.settings import Ingest, Training
from lab.simulation.fleet import Fleet
from lab.simulation.samples import SampledMetrics
from lab.simulation.state import Restart
from models.arrays import Bools, Floats, Ints
from models.observing.catch_ups import EffectWindow, SourcePolls, find_effects
from models.observing.samples import LONGEST_GAP_WINDOWS
from models.training.job_facts import learn_facts
from models.training.job_windows import KnownOperator, TrainingHistory, TrainingWindows
from models.training.operator_fits import fit_operators

WINDOW_S = 300.0
LOAD_S = 2 * WINDOW_S  # so far back from a stop polls are looked at
MEASURED_S = 3600.0  # after an event, over which its capacity is measured
LAG_S = Ingest().caught_up_lag_s
_OF_EFFECTS = (
    "unseen_s",
    "emitted_records",
    "pending_records",
    "pending_before_records",
    "load_per_s",
    "load_after_per_s",
)


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows in which a job always ran, by their last polls.

    Attributes:
        end_s: (m,).
        busy: (m, O) shares.
        rate_per_s: (m, O) processed.
        parallelism: (m, O).
    """

    end_s: Floats
    busy: Floats
    rate_per_s: Floats
    parallelism: Ints


@dataclass(frozen=True, slots=True)
class JobPolls:
    """Polls of one job that runs.

    Attributes:
        job: its number.
        at_s: (n,).
        running_s: (n,) since when the job ran.
        since_s: (n,) since the poll before; NaN when that is of another run.
        emitted, pending: (n, S) records of the sources.
        out_per_s, arriving_per_s: (n, S) rates since the poll before.
        windows: by those polls that are regular.
    """

    job: int
    at_s: Floats
    running_s: Floats
    since_s: Floats
    emitted: Floats
    pending: Floats
    out_per_s: Floats
    arriving_per_s: Floats
    windows: Windows

    @property
    def names(self) -> tuple[str, ...]:
        """Return a name for each source."""
        return tuple(map(str, range(self.emitted.shape[1])))

    def by_source(self, used: Bools) -> dict[str, SourcePolls]:
        """Return what some of the polls show of each source, by its name; used: (n,)."""
        at_ms = np.rint(1000.0 * self.at_s[used]).astype(np.int64)
        each = zip(self.names, self.out_per_s.T, self.arriving_per_s.T, self.emitted.T, self.pending.T, strict=True)
        result = {}
        for name, out, arriving, emitted, pending in each:
            with np.errstate(invalid="ignore", divide="ignore"):
                lag_s = np.where(pending == 0, 0.0, np.where(out > 0, pending / out, np.nan))
            values = (self.since_s, lag_s, arriving, emitted, pending)
            result[name] = SourcePolls(at_ms, *(one[used] for one in values))
        return result

    @classmethod
    def of(cls, fleet: Fleet, samples: SampledMetrics, job: int, polled: Bools, regular: Bools) -> JobPolls:
        """Return the polls of a job; polled, regular: (K,)."""
        rows = np.flatnonzero(polled & ~samples.down[:, job])
        sources = fleet.is_source[job]
        at_s, running_s = samples.at_s[rows], samples.down_until[rows, job]
        emitted, pending = (each[rows, job][:, sources] for each in (samples.records_out, samples.pending))
        since_s = np.diff(at_s, prepend=np.nan)
        since_s[np.diff(running_s, prepend=np.nan) != 0.0] = np.nan
        out, growth = (np.diff(each, axis=0, prepend=np.nan) / since_s[:, None] for each in (emitted, pending))
        windows = _cut_windows(fleet, samples, job, rows[regular[rows]])
        arriving = np.maximum(out + growth, 0.0)
        return cls(job, at_s, running_s, since_s, emitted, pending, out, arriving, windows)


def _cut_windows(fleet: Fleet, samples: SampledMetrics, job: int, rows: Ints) -> Windows:
    first, last = rows[:-1], rows[1:]
    span_s = samples.at_s[last] - samples.at_s[first]
    whole = (samples.down_until[first, job] == samples.down_until[last, job]) & (span_s == WINDOW_S)
    first, last = first[whole], last[whole]
    done = np.where(fleet.is_source[job], samples.records_out[:, job], samples.records_in[:, job])
    busy, rate = ((each[last] - each[first]) / WINDOW_S for each in (samples.busy_s[:, job], done))
    return Windows(samples.at_s[last], busy, rate, samples.parallelism[last, job])


def fit_capacities(fleet: Fleet, job: int, windows: Windows, until_s: float) -> dict[int, Floats]:
    """Return the capacity curve of each operator of a job, over its parallelism, from windows before a time."""
    present = np.flatnonzero(fleet.present[job])
    before = windows.end_s < until_s
    busy, rate = windows.busy[before][:, present], windows.rate_per_s[before][:, present]
    unknown = np.full(busy.shape, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        true_rate = rate / busy
    measured = TrainingWindows(
        tuple(map(str, present.tolist())),
        start_s=(windows.end_s[before] - WINDOW_S).astype(np.int64),
        window_s=np.full(len(busy), WINDOW_S),
        parallelism=windows.parallelism[before][:, present],
        rate_per_s=rate,
        output_per_s=unknown,
        true_rate_per_s=true_rate,
        busy=busy,
        busy_most=unknown,
        held_up=np.zeros(busy.shape),
        latency_ms=unknown,
        is_demand=np.ones(busy.shape, bool),
        is_source=fleet.is_source[job][present],
    )
    top = int(fleet.p_max[job].max())
    known = tuple(KnownOperator(str(one), (), int(fleet.p_max[job, one])) for one in present.tolist())
    history = TrainingHistory(("simulated", str(job)), measured, known, top)
    points = learn_facts(history, Training(), until_s).points
    fits = fit_operators(points, leaves_out=False)
    return {int(one.operator): fitted.mean_per_s for one, fitted in zip(points, fits, strict=True)}


@dataclass(frozen=True, slots=True)
class EventReader:
    """Reads what polls tell of the restarts of a job.

    Attributes:
        fleet: the jobs.
        polls: of the job.
        curves: capacity of each operator over its parallelism.
    """

    fleet: Fleet
    polls: JobPolls
    curves: dict[int, Floats]

    def read(self, restart: Restart, end_s: float) -> dict[str, float]:
        """Return the figures of one restart, NaN where polls do not tell; ``end_s``: the next stop, or the data's end.

        Names are those of silver.rescales, and ``capacity_per_s`` and ``capacity_after_per_s`` of all sources.
        """
        polls, loads = self.polls, self.polls.at_s >= restart.down_from_s - LOAD_S
        span = EffectWindow(
            started_ms=_to_ms(restart.down_from_s),
            running_ms=_to_ms(restart.down_until_s),
            until_ms=_to_ms(end_s),
            window_s=int(WINDOW_S),
            longest_gap_s=LONGEST_GAP_WINDOWS * WINDOW_S,
        )
        effects = find_effects(span, polls.by_source(loads & (polls.at_s < end_s)), LAG_S)
        shown_s = math.nan if effects.caught_up_ms is None else effects.caught_up_ms / 1000.0
        around = [effects.source_load_per_s.get(name, math.nan) for name in polls.names]
        return {
            **{name: getattr(effects, name) for name in _OF_EFFECTS},
            "catch_up_s": shown_s - restart.down_until_s,
            "capacity_per_s": self._find_capacity(restart, np.array(around)),
            "capacity_after_per_s": self._find_sustained(restart, end_s),
        }

    def _find_capacity(self, restart: Restart, rates: Floats) -> float:
        """Return what all sources together sustain at the mix of these rates, by the curves."""
        fleet, job = self.fleet, self.polls.job
        wide = np.zeros(fleet.shape[1])
        wide[fleet.is_source[job]] = rates / rates.sum()
        need = fleet.mean_gain[job] @ wide
        return min(
            (
                float(curve[restart.after[operator] - 1] / need[operator])
                for operator, curve in self.curves.items()
                if need[operator] > 0
            ),
            default=float("nan"),
        )

    def _find_sustained(self, restart: Restart, end_s: float) -> float:
        windows = self.polls.windows
        begin_s = windows.end_s - WINDOW_S
        last_s = min(end_s, restart.down_until_s + MEASURED_S)
        inside = (begin_s >= restart.down_until_s + Ingest().settle_s) & (begin_s < last_s) & (windows.end_s < end_s)
        if not inside.any():
            return float("nan")
        emitted = windows.rate_per_s[inside][:, self.fleet.is_source[self.polls.job]].sum(axis=1)
        return float((emitted / windows.busy[inside].max(axis=1)).mean())


def _to_ms(at_s: float) -> int:
    return round(1000.0 * at_s)
