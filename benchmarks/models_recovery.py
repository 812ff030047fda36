"""Recovery models on the simulated history of ``make run``: errors and coverage of events, each predicted ahead.

``python -m benchmarks.models_recovery [--days 21]``

The jobs are simulated as for ``make run`` and polled every five minutes; an event's label and prediction come from the
functions that training calls, on the same figures.  Each job's newer half is scored; capacities come from the older
half of its undisturbed polls, downtimes and intervals from the events before.  The true catch-up, which no poll shows,
stands beside the label: the simulator's backlog, minute by minute.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.measurement import Measurement
from cli.arguments import CommandParser, whole_number
from cli.history import HistoryRequest, run
from include.settings import Ingest
from models.arrays import Floats
from models.capacity.capacity_samples import pack
from models.capacity.curves import fit_curves
from models.downtime import fit_downtimes
from models.job_models import closed_form_recovery_s
from models.recovery import CAUSE_PRIOR_S
from models.recovery_intervals import error_scale, is_inside_ahead, standardise_errors
from models.recovery_labels import find_catch_up_s
from models.simulation.fleet import Fleet
from models.simulation.history import SimulatedHistory
from models.simulation.samples import Samples
from models.simulation.state import Restart, RestartKind

END = datetime(2026, 11, 20, 20, tzinfo=UTC)
DAYS = 21
POLL_S, MINUTE_S = 300, 60
LAG_S = Ingest().caught_up_lag_s
POLLS_AROUND = 1  # over which the load before and after an event is averaged
PAUSE_S = 600.0  # after a stop in which a poll does not count for capacities


@dataclass(frozen=True, slots=True)
class Figures:
    """What is measured; shares.

    Attributes:
        events: that are scored.
        error: mean of |predicted - label| / label of the recovery.
        true_error: the same against the simulator's own recovery.
        label_error: of the label against it.
        downtime_error: mean error of the downtime alone.
        coverage_80, coverage_95: share of events inside the intervals.
    """

    events: int
    error: float
    true_error: float
    label_error: float
    downtime_error: float
    coverage_80: float
    coverage_95: float


def measure(days: int) -> Figures:
    """Simulate, predict and score."""
    request = HistoryRequest(hours=24 * days, end=END, raw=Path("unused"), window_s=MINUTE_S)
    fleet, history = run(request, request.jobs())
    rows = pd.DataFrame(_events(fleet, history)).sort_values("started_s", ignore_index=True)
    return score(rows, len(fleet.specs))


def score(rows: pd.DataFrame, jobs: int) -> Figures:
    """Return the figures of events in order of time."""
    column = {name: rows[name].to_numpy(float) for name in rows.columns if name != "kind"}
    before = np.full(len(rows), np.nan)
    for kind, cause in ((RestartKind.RESCALE, "rescale"), (RestartKind.FAILURE, "taskmanager_lost")):
        mine = (rows["kind"] == kind).to_numpy()
        fitted = fit_downtimes(
            column["downtime_s"][mine],
            column["state_bytes"][mine],
            rows["job"].to_numpy(np.int64)[mine],
            jobs,
            CAUSE_PRIOR_S["rescale" if cause == "rescale" else "taskmanager_lost"],
        )
        before[mine] = fitted.before_s
    load = 0.5 * (column["load_per_s"] + column["load_after_per_s"])
    catch_up_s, _ = find_catch_up_s(
        shown_s=column["shown_s"],
        unseen_s=column["unseen_s"],
        emitted=column["emitted"],
        pending=column["pending"],
        load_per_s=load,
        capacity_per_s=column["capacity_after_per_s"],
        caught_up_lag_s=LAG_S,
    )
    label, truth = column["downtime_s"] + catch_up_s, column["downtime_s"] + column["true_s"]
    whole = closed_form_recovery_s(before, column["age_s"] - LAG_S, load, column["capacity_per_s"])
    predicted = np.maximum(whole, before)
    scale = error_scale(predicted, before, load / column["capacity_per_s"])
    errors = standardise_errors(label, predicted, scale)
    newest = rows.groupby("job")["started_s"].rank(ascending=False, pct=True).to_numpy(float) <= 0.5
    used = newest & np.isfinite(errors)
    inside = is_inside_ahead(errors)[used].T
    return Figures(
        events=int(used.sum()),
        error=_mean(np.abs(predicted - label) / label, used),
        true_error=_mean(np.abs(predicted - truth) / truth, used),
        label_error=_mean(np.abs(label - truth) / truth, used),
        downtime_error=_mean(np.abs(before - column["downtime_s"]) / column["downtime_s"], used),
        coverage_80=float(inside[0].mean()),
        coverage_95=float(inside[1].mean()),
    )


def _mean(values: Floats, used: np.ndarray) -> float:
    known = values[used & np.isfinite(values)]
    return float(known.mean())


def _events(fleet: Fleet, history: SimulatedHistory) -> list[dict[str, object]]:
    """Return a row per restart that was over, and followed by polls, before the next one."""
    minutes = history.samples
    polls = minutes.cut(slice(POLL_S // MINUTE_S - 1, None, POLL_S // MINUTE_S), slice(0, len(fleet.specs)))
    by_job: dict[int, list[Restart]] = {}
    for restart in history.restarts:
        by_job.setdefault(restart.job, []).append(restart)
    rows: list[dict[str, object]] = []
    for job, restarts in by_job.items():
        ends = [*(each.down_from_s for each in restarts[1:]), float(minutes.at_s[-1])]
        curves = _fit_capacities(fleet, polls, job, restarts[len(restarts) // 2].down_from_s)
        for restart, end_s in zip(restarts, ends, strict=True):
            row = _event(fleet, (minutes, polls), restart, end_s, curves)
            if row is not None:
                rows.append(row)
    return rows


def _fit_capacities(fleet: Fleet, polls: Samples, job: int, until_s: float) -> dict[int, Floats]:
    """Return the capacity curve of each operator, over its parallelism, from polls before a time."""
    settled = polls.at_s - polls.down_until[:, job] > PAUSE_S
    rows = np.flatnonzero(settled & (polls.at_s < until_s))
    curves: dict[int, Floats] = {}
    for operator in np.flatnonzero(fleet.present[job]):
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = np.where(fleet.is_source[job, operator], polls.out_per_s, polls.in_per_s)[rows, job, operator]
            seen = pd.DataFrame(
                {"p": polls.parallelism[rows, job, operator], "c": rate / polls.busy[rows, job, operator]}
            )
        points = seen[np.isfinite(seen["c"]) & (seen["c"] > 0)].groupby("p")["c"].agg(["size", "mean", "var"])
        if points.empty:
            continue
        squares = (points["var"].fillna(0.0) * (points["size"] - 1)).to_numpy(float)
        owner = np.zeros(len(points), np.int64)
        samples = pack(owner, points.index.to_series(), points["size"], points["mean"], pd.Series(squares))
        top = max(int(fleet.p_max[job].max()) if np.ndim(fleet.p_max[job]) else int(fleet.p_max[job]), 1)
        made = fit_curves(samples, np.array([float(points.index.max())]), top, np.array([np.nan]))
        curves[int(operator)] = made.mean_per_s[0]
    return curves


def _event(
    fleet: Fleet, samples: tuple[Samples, Samples], restart: Restart, end_s: float, curves: dict[int, Floats]
) -> dict[str, object] | None:
    """Return what polls tell of one restart; None when too few came before or after it."""
    minutes, polls = samples
    job, sources = restart.job, np.flatnonzero(fleet.is_source[restart.job])
    first = int(np.searchsorted(polls.at_s, restart.down_from_s))
    back = int(np.searchsorted(polls.at_s, restart.down_until_s + 2.0))
    load = _load(polls, job, sources, first - 1 - POLLS_AROUND, first - 1)
    after = _load(polls, job, sources, back, back + POLLS_AROUND)
    if load is None or after is None or polls.at_s[back + POLLS_AROUND] >= end_s or not curves:
        return None
    pending, emitted = (each[back, job, sources].sum() for each in (polls.pending, polls.records_out))
    shown_s = float(polls.at_s[back]) - restart.down_until_s
    if emitted <= 0 or pending / (emitted / shown_s) >= LAG_S:
        return None  # not caught up at the first poll: too few to matter, and the polls between are not kept
    need = fleet.network.gain[job] @ _at_sources(fleet, sources, 0.5 * (load + after))
    capacity = np.array([_at(curves, operator, restart.after[operator]) for operator in range(len(need))])
    last = back + POLLS_AROUND
    busy_s = (polls.busy_s[last, job] - polls.busy_s[back, job]).max()
    emit = (polls.records_out[last, job, sources] - polls.records_out[back, job, sources]).sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        headroom = np.where(need > 0, capacity / need, np.inf)
        sustained_after = float(emit / busy_s)
    highest = float(np.min(headroom[fleet.present[job]]))
    return {
        "job": job,
        "kind": restart.kind,
        "started_s": restart.down_from_s,
        "downtime_s": restart.down_until_s - restart.down_from_s,
        "age_s": restart.checkpoint_age_s,
        "state_bytes": restart.state_bytes,
        "load_per_s": load.sum(),
        "load_after_per_s": after.sum(),
        "shown_s": shown_s,
        "unseen_s": shown_s,
        "emitted": emitted,
        "pending": pending,
        "capacity_per_s": highest * 0.5 * (load + after).sum(),
        "capacity_after_per_s": sustained_after,
        "true_s": _true_catch_up_s(minutes, restart, sources, after, highest * 0.5 * (load + after)),
    }


def _load(polls: Samples, job: int, sources: np.ndarray, first: int, last: int) -> Floats | None:
    """Return the arrival rate of each source between two polls of one run."""
    if first < 0 or last >= len(polls.at_s) or polls.down_from[first, job] != polls.down_from[last, job]:
        return None
    span_s = polls.at_s[last] - polls.at_s[first]
    moved = sum(each[last, job, sources] - each[first, job, sources] for each in (polls.records_out, polls.pending))
    return np.asarray(moved / span_s, float)


def _at_sources(fleet: Fleet, sources: np.ndarray, rates: Floats) -> Floats:
    wide = np.zeros(fleet.shape[1])
    wide[sources] = rates
    return wide


def _at(curves: dict[int, Floats], operator: int, parallelism: int) -> float:
    curve = curves.get(operator)
    return float(curve[parallelism - 1]) if curve is not None and 1 <= parallelism <= len(curve) else float("inf")


def _true_catch_up_s(minutes: Samples, restart: Restart, sources: np.ndarray, load: Floats, capacity: Floats) -> float:
    """Return when the backlog truly fell below LAG_S of input: between two minutes it falls evenly."""
    first = int(np.searchsorted(minutes.at_s, restart.down_until_s))
    pending = minutes.pending[first : first + POLL_S // MINUTE_S + 1, restart.job][:, sources]
    behind = (pending >= LAG_S * load).any(axis=1)
    caught_up = int(np.argmin(behind))
    if behind.all() or (capacity <= load).any():
        return float("nan")
    if caught_up:
        left, begin_s = pending[caught_up - 1], float(minutes.at_s[first + caught_up - 1]) - restart.down_until_s
    else:
        left = load * (restart.down_until_s - restart.down_from_s + restart.checkpoint_age_s)
        begin_s = 0.0
    rest_s = float(np.max((left - LAG_S * load) / (capacity - load)))
    return begin_s + float(np.clip(rest_s, 0.0, minutes.at_s[first + caught_up] - restart.down_until_s - begin_s))


def measurements(found: Figures) -> list[Measurement]:
    """Return the figures, as shares."""
    named = {
        "mean error, predicted ahead against the label": found.error,
        "mean error, predicted ahead against the true recovery": found.true_error,
        "mean error of the label against the true recovery": found.label_error,
        "mean error of the downtime": found.downtime_error,
        "inside the 80% interval": found.coverage_80,
        "inside the 95% interval": found.coverage_95,
    }
    return [Measurement(f"recovery, {name}", value, "", None, None) for name, value in named.items()]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures."""
    parser = CommandParser(prog="models_recovery", description=__doc__.split("\n")[0])
    parser.add_argument("--days", type=whole_number(2, 60), default=DAYS, help="length of the simulated history")
    found = measure(parser.parse_args(argv).days)
    table = Table("figure", "share", title=f"Recovery models, {found.events} events")
    for one in measurements(found):
        table.add_row(one.name, f"{one.value:.1%}")
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
