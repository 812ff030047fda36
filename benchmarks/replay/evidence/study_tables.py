"""The tables of docs/replay.md and README.md, from the published costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Final

import numpy as np

from benchmarks.replay.cost_rows import is_rival
from benchmarks.replay.cost_summary import AFTER, DEFAULT, collect_costs, compute_geometric_mean, list_by_trace
from benchmarks.replay.paired_intervals import compute_ratio
from benchmarks.replay.replay_candidates import BOUND
from benchmarks.replay.replay_cases import FLOOR, Row
from benchmarks.replay.replay_tables import compute_mean
from benchmarks.replay.rivals.rival_catalogue import BEST_CONSTANT, CONTROLLER_ALONE, FORMED

Cells = list[list[str]]
OWN: Final = ("planner", CONTROLLER_ALONE)
"""What the default is never to cost more than 1.01 times the cheaper of."""
NO_FORECAST: Final = f"{DEFAULT}_no_forecast"
SEGMENTS: Final = {"first_day": "first day", "after_first_day": "after it", "last_third": "last third"}
TITLES: Final[Mapping[str, str]] = {
    DEFAULT: f"**Tidewise by default, `{DEFAULT}`**",
    NO_FORECAST: "Tidewise without forecast and plan",
    CONTROLLER_ALONE: "Tidewise's controller alone, `controller_alone`",
    "planner": "Tidewise before, `planner`",
    "flink_autoscaler": "Flink autoscaler's rules",
    "flink_autoscaler_tuned": "Flink autoscaler's rules, tuned by hand",
    "conttune_a3": "ContTune, alpha 3",
    "ds2": "DS2",
    "dragster_saddle": "Dragster",
    "phoebe": "Phoebe",
    "mdp": "MDP",
    "rl_decentralised": "MDP/RL, decentralised",
    "predictive_scaling": "predictive scaling, as AWS does it",
    "weekly_schedule": "last week's hourly maximum and a share more",
    "optscaler": "OptScaler",
    "daedalus": "Daedalus",
    BEST_CONSTANT: "best constant, known in hindsight",
}


def build_readme_table(rows: Sequence[Row]) -> Cells:
    """Return the README's table: costs over the bound, each rival in its cheaper form."""
    after = [row for row in rows if row["segment"] == AFTER]
    by_name: dict[str, list[Row]] = {}
    for row in after:
        by_name.setdefault(str(row["policy"]), []).append(row)
    costs = {name: compute_geometric_mean(own, "cost_vs_bound") for name, own in by_name.items()}
    cells: Cells = [["policy", "cost over the bound", "slot-hours", "rescales a day", "late minutes a day"]]
    hours = collect_costs(after, DEFAULT, "slot_hours")
    shown = []
    for name, title in TITLES.items():
        forms = [form for form in (name, f"{name}{FORMED}") if form in costs]
        if forms:
            best = min(forms, key=costs.__getitem__)
            shown.append((costs[best], best, title + (", best form" if best != name else "")))
    for cost, name, title in sorted(shown):
        own = by_name[name]
        slots = compute_ratio(collect_costs(own, name, "slot_hours"), hours).mean
        rates = [f"{compute_mean(own, column):.1f}" for column in ("rescales_per_day", "late_minutes_per_day")]
        cells.append([title, f"{cost:.3f}", f"{slots:.2f}", *rates])
    return cells


def list_left_out(rows: Sequence[Row]) -> list[str]:
    """Return the policies of :data:`TITLES` without a row in either form."""
    run = {str(row["policy"]).removesuffix(FORMED) for row in rows}
    return [name for name in TITLES if name not in run]


def build_segments(rows: Sequence[Row], classes: Mapping[str, str]) -> Cells:
    """Return what the default costs over the cheaper of :data:`OWN`, per trace and segment: mean and worst seed."""
    cells: Cells = [["trace", "class", *SEGMENTS.values()]]
    for trace in dict.fromkeys(str(row["trace"]) for row in rows):
        line = [trace, classes[trace]]
        for segment in SEGMENTS:
            own = [row for row in rows if (row["trace"], row["segment"]) == (trace, segment)]
            costs = collect_costs(own, DEFAULT)
            others = [collect_costs(own, name) for name in OWN]
            ratios = [cost / min(other[key] for other in others) for key, cost in costs.items() if all(others)]
            line.append(f"{geometric_mean(ratios):.3f} ({max(ratios):.3f})" if ratios else "-")
        cells.append(line)
    return cells


def build_classes(rows: Sequence[Row], classes: Mapping[str, str]) -> Cells:
    """Return a line per class of load: what the default costs over the bound and over others."""
    after = [row for row in rows if row["segment"] == AFTER]
    others = [name for name in (NO_FORECAST, *OWN) if any(row["policy"] == name for row in after)]
    headings = ["class", "traces", "over the bound", "late min / day"]
    cells: Cells = [[*headings, *(f"/ {one}" for one in others), "/ best rival"]]
    for name in sorted(set(classes.values())):
        traces = [trace for trace, of in classes.items() if of == name]
        part = [row for row in after if row["trace"] in traces]
        own = [row for row in part if row["policy"] == DEFAULT]
        if not own:
            continue
        costs = collect_costs(part, DEFAULT)
        rival, least = _find_best_rival(part, costs)
        ratios = [f"{compute_ratio(costs, collect_costs(part, one)).mean:.3f}" for one in others]
        cells.append(
            [
                *(name, ", ".join(traces), f"{compute_geometric_mean(own, 'cost_vs_bound'):.3f}"),
                *(f"{compute_mean(own, 'late_minutes_per_day'):.1f}", *ratios),
                f"{least:.3f} ({rival})" if rival else "-",
            ]
        )
    return cells


def _find_best_rival(rows: Sequence[Row], costs: Mapping[tuple[str, int], float]) -> tuple[str, float]:
    rivals = {str(row["policy"]) for row in rows if is_rival(str(row["policy"]))}
    ratios = {name: compute_ratio(costs, collect_costs(rows, name)).mean for name in sorted(rivals)}
    best = max(ratios, key=ratios.__getitem__, default="")
    return best, ratios.get(best, float("nan"))


def build_loads(rows: Sequence[Row], policies: Sequence[str]) -> Cells:
    """Return a line per load: cost of each policy over the default's, late minutes a day in brackets."""
    after = [row for row in rows if row["segment"] == AFTER]
    names = [name for name in policies if any(row["policy"] == name for row in after)]
    cells: Cells = [["load", f"{DEFAULT}: cost", *(f"{name} / {DEFAULT}" for name in names if name != DEFAULT)]]
    for load in dict.fromkeys(str(row["trace"]) for row in after):
        own = [row for row in after if row["trace"] == load]
        base = collect_costs(own, DEFAULT)
        line = [load, f"{np.mean(list(base.values())):.0f} ({_mean_late(own, DEFAULT)})"]
        for name in names:
            if name != DEFAULT:
                ratio = compute_ratio(collect_costs(own, name), base).mean
                line.append(f"{ratio:.3f} ({_mean_late(own, name)})")
        cells.append(line)
    return cells


def _mean_late(rows: Sequence[Row], policy: str) -> str:
    return f"{compute_mean([row for row in rows if row['policy'] == policy], 'late_minutes_per_day'):.0f}"


def build_over_bound(rows: Sequence[Row]) -> Cells:
    """Return the cost over the bound by trace, of ours, the references and the two best rivals."""
    known = {BOUND, FLOOR, BEST_CONSTANT, DEFAULT, NO_FORECAST, *OWN}
    cells = list_by_trace(rows)
    rivals = [line[0] for line in cells[1:] if is_rival(line[0])][:3]
    return [cells[0], *(line for line in cells[1:] if line[0] in known or line[0] in rivals)]


def describe_study(about: str, rows: Sequence[Row]) -> str:
    """Return what was run, as a sentence."""
    traces = list(dict.fromkeys(str(row["trace"]) for row in rows))
    seeds = sorted({int(str(row["seed"])) for row in rows})
    days = max(float(str(row["days"])) for row in rows)
    return (
        f"{about[0].upper()}{about[1:]}: {', '.join(traces)}; `{rows[0]['job']}`, the first {days:g} days, "
        f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}."
    )
