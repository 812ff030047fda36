"""``python -m benchmarks.replay.cost_summary FILE.csv ...``: a table over traces from the costs of replays.

The files have a row per trace, job, policy, seed and segment; ``make replay`` and the commands of the published tables
write them.  ``--without TRACE`` leaves a trace out, ``--by-trace`` shows the cost over the bound on each.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import geometric_mean

import numpy as np

from benchmarks.arguments import readable_file
from benchmarks.replay.cost_rows import read_costs
from benchmarks.replay.paired_intervals import compute_ratio
from benchmarks.replay.replay_candidates import BOUND
from benchmarks.replay.replay_cases import FLOOR, Row
from benchmarks.replay.replay_tables import compute_mean
from benchmarks.replay.rivals.rival_catalogue import BEST_CONSTANT
from benchmarks.replay.tables import format_table
from cli.arguments import CommandParser
from include.settings import Planner
from lab.replay.scores import SEGMENTS

DEFAULT = Planner().policy
AFTER = "after_first_day"
_RATIOS = {"/ bound": "cost_vs_bound", "/ best rival": "cost_vs_best_rival", "/ clairvoyant": "cost_vs_clairvoyant"}
_RATES = {"rescales / day": "rescales_per_day", "late min / day": "late_minutes_per_day"}
HEADINGS = ("policy", *_RATIOS, f"/ {DEFAULT}", "95% interval", "slot-hours", *_RATES)


def collect_costs(rows: Sequence[Row], policy: str, column: str = "cost") -> dict[tuple[str, int], float]:
    """Return (trace, seed) -> what a candidate costs there, or another column of it."""
    own = (row for row in rows if row["policy"] == policy)
    return {(str(row["trace"]), int(str(row["seed"]))): float(str(row[column])) for row in own}


def summarise(rows: Sequence[Row], segment: str = AFTER) -> list[list[str]]:
    """Return the table of one job, headings first, the cheapest first; bold: the default, and what is cheaper.

    Ratios are geometric means over traces and seeds; slot-hours are over those of the default.

    Args:
        rows: of :func:`benchmarks.replay.cost_rows.compare_costs`.
        segment: of the run.
    """
    retained = [row for row in rows if row["segment"] == segment]
    default, hours = (collect_costs(retained, DEFAULT, column) for column in ("cost", "slot_hours"))
    result: list[tuple[float, list[str]]] = []
    for policy in dict.fromkeys(str(row["policy"]) for row in retained):
        own = [row for row in retained if row["policy"] == policy]
        ratio = compute_ratio(collect_costs(own, policy), default) if default else None
        cells = [policy, *(_format(compute_geometric_mean(own, column)) for column in _RATIOS.values())]
        cells += [f"{ratio.mean:.3f}", f"{ratio.low:.3f} to {ratio.high:.3f}"] if ratio else ["-", "-"]
        cells += [f"{compute_ratio(collect_costs(own, policy, 'slot_hours'), hours).mean:.3f}"] if ratio else ["-"]
        cells += [f"{compute_mean(own, column):.1f}" for column in _RATES.values()]
        is_cheaper = ratio is not None and ratio.is_cheaper and policy not in {BOUND, FLOOR, BEST_CONSTANT}
        is_bold = policy == DEFAULT or is_cheaper
        order = ratio.mean if ratio else compute_mean(own, "cost")
        result.append((order, [f"**{cell}**" for cell in cells] if is_bold else cells))
    return [list(HEADINGS), *(cells for _, cells in sorted(result))]


def compute_geometric_mean(rows: Sequence[Row], column: str) -> float:
    """Return the geometric mean of a column where it is known; NaN where it nowhere is."""
    values = [value for row in rows if isinstance(value := row.get(column), int | float)]
    return geometric_mean(values) if values else float("nan")


def list_by_trace(rows: Sequence[Row], column: str = "cost_vs_bound", segment: str = AFTER) -> list[list[str]]:
    """Return a table, headings first, of one column's means over seeds: a row per policy, a column per trace."""
    retained = [row for row in rows if row["segment"] == segment]
    traces = list(dict.fromkeys(str(row["trace"]) for row in retained))
    result: list[tuple[float, list[str]]] = []
    for policy in dict.fromkeys(str(row["policy"]) for row in retained):
        own = [row for row in retained if row["policy"] == policy]
        means = [compute_mean([row for row in own if row["trace"] == trace], column) for trace in traces]
        mean = float(np.mean(means))
        result.append((mean, [policy, *map(_format, means), _format(mean)]))
    result.sort(key=lambda one: (not np.isfinite(one[0]), one[0]))
    return [["policy", *traces, "mean"], *(cells for _, cells in result)]


def split_jobs(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of each job, in the order in which the jobs come."""
    jobs = dict.fromkeys(row["job"] for row in rows)
    return [[row for row in rows if row["job"] == job] for job in jobs]


def describe_bound(rows: Sequence[Row], segment: str = AFTER) -> str:
    """Return how near the bound is: what its own policy costs over it, on the mean and at most; empty without it."""
    own = [row for row in rows if row["policy"] == BOUND and row["segment"] == segment]
    ratios = [value for row in own if isinstance(value := row["cost_vs_bound"], float)]
    if not ratios:
        return ""
    mean, most = np.mean(ratios), max(ratios)
    return f"The bound's own policy costs {mean:.4f} of it, {most:.4f} at most ({len(ratios)} runs)."


def _format(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "-"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = CommandParser(prog="replay.cost_summary", description=__doc__)
    parser.add_argument("files", type=readable_file, nargs="+", metavar="CSV", help="costs that a replay has written")
    parser.add_argument("--without", nargs="+", default=[], metavar="TRACE", help="traces to leave out")
    parser.add_argument("--segment", choices=SEGMENTS, default=AFTER, help=f"default: {AFTER}")
    parser.add_argument("--by-trace", action="store_true", help="the cost over the bound on each trace as well")
    options = parser.parse_args(argv)
    try:
        whole = read_costs(options.files)
    except ValueError as error:
        parser.error(str(error))
    unknown = sorted(set(options.without) - {str(row["trace"]) for row in whole})
    if unknown:
        parser.error(f"no file has the traces {unknown}")
    rows = [row for row in whole if row["trace"] not in options.without]
    for own in split_jobs(rows):
        traces = ", ".join(dict.fromkeys(str(row["trace"]) for row in own))
        seeds = len({row["seed"] for row in own})
        about = f"{own[0]['job']}, {options.segment.replace('_', ' ')}: {traces}; seeds: {seeds}."
        print(f"{about} {describe_bound(own, options.segment)}".strip())
        print(f"\n{format_table(summarise(own, options.segment))}\n")
        if options.by_trace:
            print(f"{format_table(list_by_trace(own, segment=options.segment))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
