"""Recovery models on the simulated history of ``make run``: errors, their parts, and coverage of events.

``python -m benchmarks.recovery.models [--days 21] [--seed 7]``

The jobs are simulated and polled as for ``make run``; an event's label, load and prediction come from the functions
that training calls, on the same figures, and the events are those that it scores: of each job and kind the newest, of
these each job's newer half.  Capacities come from the windows of the older half of all events, downtimes and intervals
from the events before.  The true recovery, which no poll shows, stands beside the label (``truth.py``).

The floor is the error of one who knows the simulator's parameters (downtime, capacity curves) and the true load and age
of the checkpoint, but neither the draw of the downtime nor that of the capacity.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.measurement import Measurement
from benchmarks.recovery.events import LAG_S, EventReader, JobPolls, fit_capacities
from benchmarks.recovery.truth import Simulator
from cli.arguments import CommandParser, whole_number
from lab.commands.history import RECOVERY_S, HistoryRequest, run
from lab.simulation.state import RestartKind
from models.arrays import Bools, Floats
from models.bundle.job_models import CauseKind, closed_form_recovery_s
from models.recovery.downtime import find_change_s, fit_downtimes
from models.recovery.intervals import error_scale, is_inside_ahead, standardise_errors
from models.recovery.labels import count_load_per_s, find_catch_up_s
from models.recovery.recovery_model import CAUSE_PRIOR_S
from models.training.recovery_fits import RECENT_EVENTS
from spark_jobs.train.recovery_scores import recovery_errors
from spark_jobs.train.training_measures import NEWEST_SHARE

END = datetime(2026, 11, 20, 20, tzinfo=UTC)
DAYS, SEED = 21, 7  # of `make run`
_CAUSES: dict[RestartKind, CauseKind] = {
    RestartKind.RESCALE: "rescale",
    RestartKind.FAILURE: "taskmanager_lost",
}


@dataclass(frozen=True, slots=True)
class Figures:
    """What is measured.

    Attributes:
        events: that are scored.
        unbounded: of these, not predicted to end.
        shares: by name; errors are means of |predicted - seen| / seen.
    """

    events: int
    unbounded: int
    shares: dict[str, float] = field(default_factory=dict)


def measure(days: int, seed: int = SEED) -> Figures:
    """Simulate, predict and score."""
    request = HistoryRequest(hours=24 * days, end=END, raw=Path("unused"), seed=seed, recovery_s=RECOVERY_S)
    return score(read_events(request))


def read_events(request: HistoryRequest) -> pd.DataFrame:
    """Return the events of a history in order of time: what polls tell of each, and ``true_`` figures."""
    jobs = request.jobs()
    fleet, history = run(request, jobs)
    simulator, samples = Simulator(request, jobs, fleet, history), history.samples
    polled = request.cadence.find_recovering(fleet, samples)
    regular = np.zeros(len(samples.at_s), bool)
    regular[request.cadence.list_regular(range(len(regular)))] = True
    rows = []
    for job in range(len(jobs)):
        mine = [each for each in history.restarts if each.job == job]
        polls = JobPolls.of(fleet, samples, job, polled[:, job] | regular, regular)
        curves = fit_capacities(fleet, job, polls.windows, mine[len(mine) // 2].down_from_s if mine else 0.0)
        reader = EventReader(fleet, polls, curves)
        ends = [*(each.down_from_s for each in mine[1:]), float(samples.at_s[-1])]
        for restart, end_s in zip(mine, ends, strict=True):
            if restart.down_until_s >= end_s:
                continue
            own = {
                "job": job,
                "cause_kind": _CAUSES[restart.kind],
                "started_s": restart.down_from_s,
                "downtime_s": restart.down_until_s - restart.down_from_s,
                "replay_s": restart.checkpoint_age_s,
                "state_bytes": restart.state_bytes,
            }
            truth = asdict(simulator.tell(restart, end_s, LAG_S))
            rows.append({**own, **reader.read(restart, end_s), **{f"true_{name}": truth[name] for name in truth}})
    return pd.DataFrame(rows).sort_values("started_s", ignore_index=True)


def score(rows: pd.DataFrame) -> Figures:
    """Return the figures of events in order of time."""
    age = rows.groupby(["job", "cause_kind"])["started_s"].rank(ascending=False)
    rows = rows[age <= RECENT_EVENTS].reset_index(drop=True)
    column = {name: rows[name].to_numpy(float) for name in rows.columns if name != "cause_kind"}
    down_s, (before_s, observed_before) = column["downtime_s"], _expect_downtimes(rows)
    load = count_load_per_s(
        emitted=column["emitted_records"],
        pending=column["pending_records"],
        pending_before=column["pending_before_records"],
        since_stop_s=down_s + column["catch_up_s"],
        replay_s=column["replay_s"],
        before_per_s=column["load_per_s"],
        after_per_s=column["load_after_per_s"],
    )
    catch_up_s, resolution_s = find_catch_up_s(
        shown_s=column["catch_up_s"],
        unseen_s=column["unseen_s"],
        emitted=column["emitted_records"],
        pending=column["pending_records"],
        load_per_s=load,
        capacity_per_s=column["capacity_after_per_s"],
        caught_up_lag_s=LAG_S,
    )
    label_s, true_s = down_s + catch_up_s, column["true_recovery_s"]
    newest = rows.groupby("job")["started_s"].rank(ascending=False, pct=True).to_numpy(float) <= NEWEST_SHARE

    def predict(downtime_s: Floats, behind: Floats, load_per_s: Floats, capacity_per_s: Floats) -> Floats:
        whole_s = closed_form_recovery_s(downtime_s, behind / load_per_s - LAG_S, load_per_s, capacity_per_s)
        return np.maximum(whole_s, downtime_s)

    behind = column["replay_s"] * load + np.nan_to_num(column["pending_before_records"])
    capacity, true_load, true_behind = column["capacity_per_s"], column["true_load_per_s"], column["true_replayed"]
    predicted = predict(before_s, behind, load, capacity)
    # Nobody has counted yet what will arrive; the load right before the stop is the least that is known.
    ahead = predict(before_s, behind, np.where(np.isfinite(column["load_per_s"]), column["load_per_s"], load), capacity)
    floor = predict(column["true_expected_downtime_s"], true_behind, true_load, column["true_expected_capacity_per_s"])
    scored = pd.DataFrame({"seen_s": label_s, "predicted_s": predicted, "resolution_s": resolution_s})
    error = recovery_errors(scored)
    scale = error_scale(predicted, before_s, load / capacity, observed_before)
    standardised = standardise_errors(label_s, predicted, scale)
    inside = is_inside_ahead(standardised)[newest]

    def against(seen_s: Floats, predicted_s: Floats) -> float:
        return _mean(np.abs(predicted_s - seen_s) / seen_s, newest & np.isfinite(predicted_s))

    return Figures(
        events=int((newest & np.isfinite(error)).sum()),
        unbounded=int((newest & np.isinf(predicted)).sum()),
        shares={
            "error against the label": _mean(error, newest),
            "error against the label, rescales": _mean(error, newest & (rows["cause_kind"] == "rescale").to_numpy()),
            "error against the true recovery": against(true_s, predicted),
            "floor: parameters known, draws not": against(true_s, floor),
            "error of the label against the true recovery": against(true_s, label_s),
            "error of the downtime": against(down_s, before_s),
            "floor of the downtime": against(down_s, column["true_expected_downtime_s"]),
            "error of the load": against(true_load, load),
            "error of the capacity": against(column["true_capacity_per_s"], capacity),
            "against the true recovery, had the downtime been known": against(
                true_s, predict(down_s, behind, load, capacity)
            ),
            "against the true recovery, had the load been known": against(
                true_s, predict(before_s, true_behind, true_load, capacity)
            ),
            "against the true recovery, had the capacity been known": against(
                true_s, predict(before_s, behind, load, column["true_capacity_per_s"])
            ),
            "against the true recovery, had all three been known": against(
                true_s, predict(down_s, true_behind, true_load, column["true_capacity_per_s"])
            ),
            "error against the label, with the load before the stop": against(label_s, ahead),
            "labels inside the 80% interval": float(np.nanmean(inside[:, 0])),
            "labels inside the 95% interval": float(np.nanmean(inside[:, 1])),
        },
    )


def _expect_downtimes(rows: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return (n,) s what was expected of each event from those before it, and (n,) from how many of the job."""
    before_s, observed_before = np.full(len(rows), np.nan), np.zeros(len(rows))
    seconds, size, job = (rows[name].to_numpy() for name in ("downtime_s", "state_bytes", "job"))
    jobs, failed = int(job.max()) + 1, (rows["cause_kind"] == "taskmanager_lost").to_numpy()
    change_s = find_change_s(seconds, size, job, jobs, CAUSE_PRIOR_S["rescale"], is_other=failed)
    causes: tuple[tuple[CauseKind, Bools, Floats | None], ...] = (
        ("rescale", ~failed, None),
        ("taskmanager_lost", failed, change_s),
    )
    for cause, mine, change in causes:
        own = (seconds[mine], size[mine], job[mine], jobs)
        result = fit_downtimes(*own, CAUSE_PRIOR_S[cause], change_s=change)
        before_s[mine], observed_before[mine] = result.before_s, result.seen_before
    return before_s, observed_before


def _mean(values: Floats, used: Bools) -> float:
    known = values[used & np.isfinite(values)]
    return float(known.mean())


def measurements(result: Figures) -> list[Measurement]:
    """Return the figures, as shares."""
    return [Measurement(f"recovery, {name}", value, "", None, None) for name, value in result.shares.items()]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures."""
    parser = CommandParser(prog="recovery.models", description=__doc__.split("\n")[0])
    parser.add_argument("--days", type=whole_number(2, 60), default=DAYS, help="length of the simulated history")
    parser.add_argument("--seed", type=whole_number(0), default=SEED, help="of the history")
    options = parser.parse_args(argv)
    result = measure(options.days, options.seed)
    title = f"Recovery models, {result.events} events, {result.unbounded} not predicted to end"
    table = Table("figure", "share", title=title)
    for name, value in result.shares.items():
        table.add_row(name, f"{value:.1%}")
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
