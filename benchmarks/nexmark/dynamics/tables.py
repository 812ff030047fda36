"""The tables of the runs, in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.nexmark.dynamics.measures import CAUGHT_UP_S

_HEADS: Mapping[str, str] = {
    "largest_age_s": "largest age, s",
    "wish_minutes": "wish, min",
    "running_minutes": "running, min",
    "caught_up_minutes": "caught up, min",
    "wishes": "wishes",
    "error_s": "error of the age, s",
    "formula_s": "of backlog / rate, s",
    "error_in_all_s": "with restarts: age, s",
    "formula_in_all_s": "backlog / rate, s",
}


def print_tables(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return medians over the runs, a row for each job, event and policy; none where nothing waited or was wanted."""
    if not runs:
        return "No run yet."
    shares = ", ".join(f"{run['cpu_share']:.0%}" for run in runs)
    intervals = ", ".join(f"{run['checkpoint_every_s']:g}" for run in runs)
    names = ["job", "event", "policy", "runs", *_HEADS.values()]
    lines = [
        f"Medians of {len(runs)} runs of {runs[-1]['minutes']:g} minutes, checkpoints every {intervals} s;",
        f"all processors of the machine were {shares}",
        "busy (what runs at a lower priority beside is not counted).",
        "",
        f"| {' | '.join(names)} |",
        "|---" * len(names) + "|",
    ]
    for job, kind, policy in _list_rows(runs):
        rows = [row for run in runs for row in run["outcomes"].get(policy, {}).get(job, ()) if row["kind"] == kind]
        if all((row["largest_age_s"] or 0.0) <= CAUGHT_UP_S and not row["wishes"] for row in rows):
            continue  # nothing waited, and nothing was wanted
        cells = [job, kind, policy, str(len(rows))]
        cells += [_median(rows, name) for name in _HEADS]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _list_rows(runs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    rows = {
        (job, row["kind"], policy): None
        for run in runs
        for policy, jobs in run["outcomes"].items()
        for job, outcomes in jobs.items()
        for row in outcomes
    }
    kinds = list(dict.fromkeys(kind for _, kind, _ in rows))
    return sorted(rows, key=lambda row: (row[0], kinds.index(row[1])))


def _median(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    known = [row[name] for row in rows if row[name] is not None]
    return f"{statistics.median(known):.1f}".removesuffix(".0") if known else "-"
