"""What polls tell of the restarts of a simulated job, as the pipeline reads it from them.

Ingestion does this in Spark (spark_jobs/job_history/rescales.py); here it is done on the samples of the simulator,
without raw files between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.settings import Ingest, Training
from models.arrays import Bools, Floats, Ints
from models.simulation.fleet import Fleet
from models.simulation.samples import Samples
from models.simulation.state import Restart
from models.training.job_facts import learn_facts
from models.training.job_windows import JobHistory, JobWindows, KnownOperator
from models.training.operator_fits import fit_operators

LOAD_S = 600.0  # before a stop and after a start, over which the load is averaged
WINDOW_S = 300.0
MEASURED_S = 3600.0  # after an event, over which its capacity is measured
STALE_S = 2.0
LAG_S = Ingest().caught_up_lag_s


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

    @classmethod
    def of(cls, fleet: Fleet, samples: Samples, job: int, polled: Bools, regular: Bools) -> JobPolls:
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


def _cut_windows(fleet: Fleet, samples: Samples, job: int, rows: Ints) -> Windows:
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
    measured = JobWindows(
        tuple(map(str, present.tolist())),
        start_s=(windows.end_s[before] - WINDOW_S).astype(np.int64),
        window_s=np.full(len(busy), WINDOW_S),
        parallelism=windows.parallelism[before][:, present],
        rate_per_s=rate,
        output_per_s=unknown,
        true_rate_per_s=true_rate,
        busy=busy,
        busy_most=unknown,
        latency_ms=unknown,
        is_demand=np.ones(busy.shape, bool),
        is_source=fleet.is_source[job][present],
    )
    top = int(fleet.p_max[job].max())
    known = tuple(KnownOperator(str(one), (), int(fleet.p_max[job, one])) for one in present.tolist())
    history = JobHistory(("simulated", str(job)), measured, known, top)
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
        polls = self.polls
        near = (polls.at_s <= restart.down_from_s) & (polls.at_s >= restart.down_from_s - LOAD_S)
        mine = np.flatnonzero((polls.running_s == restart.down_until_s) & (polls.at_s < end_s))
        for_s, since_s = polls.at_s[mine] - restart.down_until_s, polls.since_s[mine]
        before = _mean(polls.arriving_per_s[near])
        after = _mean(polls.arriving_per_s[mine[(for_s <= LOAD_S) & np.isfinite(since_s)]])
        with np.errstate(invalid="ignore", divide="ignore"):
            out = polls.out_per_s[mine]
            rate = np.where(np.isfinite(out), out, polls.emitted[mine] / for_s[:, None])
            has_caught_up = (polls.pending[mine] < LAG_S * rate) & (for_s > STALE_S)[:, None]
        result = dict.fromkeys(("catch_up_s", "unseen_s", "emitted_records", "pending_records"), float("nan"))
        if has_caught_up.any(axis=0).all():
            shown = int(has_caught_up.argmax(axis=0).max())  # the poll at which the last source is shown to
            result["catch_up_s"], result["unseen_s"] = float(for_s[shown]), float(np.fmin(since_s[shown], for_s[shown]))
            result["emitted_records"] = float(polls.emitted[mine[shown]].sum())
            result["pending_records"] = float(polls.pending[mine[shown]].sum())
        around = 0.5 * (np.where(np.isfinite(before), before, after) + np.where(np.isfinite(after), after, before))
        return {
            **result,
            "pending_before_records": float(polls.pending[near][-1].sum()) if near.any() else float("nan"),
            "load_per_s": float(before.sum()),
            "load_after_per_s": float(after.sum()),
            "capacity_per_s": self._find_capacity(restart, around),
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


def _mean(rates: Floats) -> Floats:
    known = rates[np.isfinite(rates).all(axis=1)]
    return np.asarray(known.mean(axis=0)) if len(known) else np.full(rates.shape[1], np.nan)
