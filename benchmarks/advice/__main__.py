"""``python -m benchmarks.advice``: what `tidewise advise` said of the shipped history, beside what the simulator shows.

The simulator that made the history runs again, once as it was and once with Tidewise's steps of the appraised days in
the place of the jobs' own control: with its real capacities, downtimes and failures, none of which the advice has seen.
Both are measured as a poller sees them. Run it after `tidewise advise`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.advice.follow_steps import FollowSteps
from benchmarks.arguments import readable_file
from cli.arguments import CommandParser
from include.settings import PROJECT, load_settings
from include.utc import parse_utc
from lab.backtest.daily_costs import weigh
from lab.commands.history import POLL_BEFORE_WINDOW_END_S, HistoryRequest, run
from lab.replay.conditions import Prices
from lab.simulation.fleet import Fleet
from lab.simulation.history import SimulatedHistory
from lab.simulation.state import RestartKind
from models.arrays import Floats, Ints

CLUSTER = "simulated"
WIDTH = 140


@dataclass(frozen=True, slots=True)
class Day:
    """A day's means of a job."""

    slot_hours: float
    late_minutes: float
    rescales: float

    def cost(self, prices: Prices, slots_max: int) -> float:
        """Return slots, late minutes and rescales in slot-hours."""
        return weigh(self.slot_hours, self.late_minutes, self.rescales, prices, slots_max)


def order_steps(job: Mapping[str, Any], fleet: Fleet, place: int) -> tuple[Ints, Ints]:
    """Return Tidewise's steps of a job with the operators in the order of the simulator."""
    steps = job["options"][1]["steps"]
    names = [operator.name for operator in fleet.specs[place].operators]
    columns = [job["operators"].index(name) for name in names]
    return np.array(steps["at_s"], np.int64), np.array(steps["parallelism"], np.int64)[:, columns]


def measure(fleet: Fleet, result: SimulatedHistory, place: int, span: tuple[float, float], late_after_s: float) -> Day:
    """Return what a poller sees of a job between two times, seconds of simulation; a day's means."""
    samples = result.samples
    inside = (samples.at_s > span[0]) & (samples.at_s <= span[1])
    days, window_s = (span[1] - span[0]) / 86_400.0, float(np.diff(samples.at_s[:2])[0])
    slots = samples.parallelism[inside, place].max(axis=1)
    sources = np.flatnonzero(fleet.is_source[place])
    pending = samples.pending[inside][:, place, sources]
    arriving = np.maximum(sum_emitted(samples, place, sources), 1e-9)
    late = (pending / arriving[inside] > late_after_s).any(axis=1) & ~samples.down[inside, place]
    rescales = [
        one
        for one in result.restarts
        if one.job == place and one.kind is RestartKind.RESCALE and span[0] < one.down_from_s <= span[1]
    ]
    return Day(
        slot_hours=float(slots.sum()) * window_s / 3600.0 / days,
        late_minutes=float(late.sum()) * window_s / 60.0 / days,
        rescales=len(rescales) / days,
    )


def sum_emitted(samples: Any, place: int, sources: Ints) -> Floats:
    """Return (K, S) records/s that sources emit at each poll."""
    return np.asarray(samples.out_per_s[:, place][:, sources])


def compare(advice: Mapping[str, Any], console: Console) -> dict[str, Any]:
    """Run the simulator twice, print a table, and return the figures."""
    settings = load_settings()
    costs = settings.planner.costs
    prices = Prices(costs.resource_weight, costs.late_weight, costs.rescale_weight, costs.late_after_s)
    end = parse_utc(advice["as_of"])
    request = HistoryRequest(hours=24 * history_days(advice, end), end=end, raw=Path())
    jobs = request.jobs()
    start_s = request.start.timestamp() - POLL_BEFORE_WINDOW_END_S
    appraised = {job["job"]: job for job in advice["jobs"] if job["cluster"] == CLUSTER}
    places = {job.spec.name: place for place, job in enumerate(jobs) if job.spec.name in appraised}
    fleet, as_it_ran = run(request, jobs)
    steps = {place: order_steps(appraised[name], fleet, place) for name, place in places.items()}
    _, followed = run(request, jobs, lambda own: FollowSteps(own, start_s, steps))
    rows = []
    for name, place in sorted(places.items()):
        job = appraised[name]
        begin_s = job["first_s"] - start_s
        span = (begin_s, begin_s + 86_400.0 * job["days"])
        for option, history in ((0, as_it_ran), (1, followed)):
            received = measure(fleet, history, place, span, costs.late_after_s)
            reported = job["options"][option]
            rows.append(
                {
                    "job": name,
                    "under": reported["title"],
                    "cost_predicted": reported["cost"]["mean"],
                    "cost_came": received.cost(prices, job["slots_max"]),
                    "late_predicted": reported["late_minutes"]["mean"],
                    "late_came": received.late_minutes,
                    "slot_hours_predicted": reported["slot_hours"]["mean"],
                    "slot_hours_came": received.slot_hours,
                    "rescales_predicted": reported["rescales"]["mean"],
                    "rescales_came": received.rescales,
                }
            )
    console.print(table_of(rows))
    return {"rows": rows, "summary": summarise(rows)}


def history_days(advice: Mapping[str, Any], end: datetime) -> int:
    """Return the days of the history that was appraised."""
    first = parse_utc(str(advice["history"]["first"]).replace(" ", "T"))
    return round((end - first).total_seconds() / 86_400.0)


def summarise(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return per option the error of the sum over jobs, and the share of jobs within 10%."""
    result = {}
    for title in dict.fromkeys(row["under"] for row in rows):
        own = [row for row in rows if row["under"] == title]
        reported, received = (np.array([row[f"cost_{kind}"] for row in own]) for kind in ("predicted", "came"))
        result[title] = {
            "jobs": len(own),
            "error_of_sum": float(reported.sum() / received.sum() - 1.0),
            "largest_error": float(np.abs(reported / received - 1.0).max()),
            "within_tenth": float((np.abs(reported / received - 1.0) <= 0.1).mean()),
            "late_predicted": float(sum(row["late_predicted"] for row in own)),
            "late_came": float(sum(row["late_came"] for row in own)),
        }
    return result


def table_of(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a row for each job and option."""
    table = Table(
        title="Predicted, and what the simulator shows; a day's means, cost in slot-hours", title_justify="left"
    )
    for title in ("job", "under"):
        table.add_column(title)
    for title in ("cost predicted", "came", "error", "late minutes predicted", "came", "rescales predicted", "came"):
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(
            row["job"],
            row["under"],
            f"{row['cost_predicted']:,.1f}",
            f"{row['cost_came']:,.1f}",
            f"{row['cost_predicted'] / row['cost_came'] - 1.0:+.1%}",
            *(f"{row[f'late_{kind}']:,.1f}" for kind in ("predicted", "came")),
            *(f"{row[f'rescales_{kind}']:,.1f}" for kind in ("predicted", "came")),
        )
    return table


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="advice", description=__doc__)
    parser.add_argument("--advice", type=readable_file, default=PROJECT / "out" / "advice.json")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Compare and print; returns the exit code."""
    options = _parse(argv)
    result = compare(json.loads(options.advice.read_text()), Console(width=WIDTH))
    for title, one in result["summary"].items():
        print(
            f"{title}: cost of {one['jobs']:.0f} jobs predicted with {one['error_of_sum']:+.1%}, "
            f"{one['within_tenth']:.0%} of jobs within 10%, the worst off by {one['largest_error']:.1%}; "
            f"late minutes a day {one['late_predicted']:.1f} predicted, {one['late_came']:.1f} came"
        )
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
