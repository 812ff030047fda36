"""What Tidewise is to hold during a change, and where the runs show that it does not."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.nexmark.dynamics.policies import TIDEWISE
from benchmarks.nexmark.dynamics.schedule import Kind

ERROR_MAX_S = 10.0
OF_FORMULA_MAX = 0.5
WISH_WITHIN_MINUTES: Mapping[str, float] = {"tidewise": 2.0, "tidewise-defaults": 6.0}
RIVAL = "autoscaler-2min"
WISHES_MAX = 2  # a rise, and one correction


def list_shortfalls(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each figure that does not hold."""
    result = [text for run in runs for text in _judge_run(run)]
    return [*result, *_compare_catch_ups(runs)]


def _judge_run(run: Mapping[str, Any]) -> Iterator[str]:
    for policy in TIDEWISE:
        for job, outcomes in run["outcomes"].get(policy, {}).items():
            for row in outcomes:
                yield from (f"{policy}, {job}, {row['kind']}: {text}" for text in _judge_event(policy, row))


def _judge_event(policy: str, row: Mapping[str, Any]) -> Iterator[str]:
    error, error_all, formula_all = row["error_s"], row["error_in_all_s"], row["formula_in_all_s"]
    if error is not None and error > ERROR_MAX_S:
        yield f"error of the age {error:.1f} s"
    if None not in {error_all, formula_all} and error_all > OF_FORMULA_MAX * formula_all:
        yield f"error of the age {error_all:.1f} s, of backlog / rate {formula_all:.1f} s"
    if row["taken_back"]:
        yield f"{row['taken_back']} steps taken back"
    if row["smaller_while_behind"]:
        yield f"{row['smaller_while_behind']} wishes for fewer slots while it was behind"
    if row["kind"] == Kind.STEEP_RISE:
        wish, most = row["wish_minutes"], WISH_WITHIN_MINUTES[policy]
        if wish is None or wish > most:
            yield "no wish for more slots" if wish is None else f"first wish after {wish:.1f} minutes"
        if row["wishes"] > WISHES_MAX:
            yield f"{row['wishes']} wishes at one load"


def _compare_catch_ups(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the events after which Tidewise's jobs had caught up later than those of Flink's autoscaler, by medians."""
    events = {
        (job, row["kind"]): None
        for run in runs
        for job, rows in run["outcomes"].get(RIVAL, {}).items()
        for row in rows
        if row["largest_age_s"] is not None
    }
    for job, kind in events:
        ours, theirs = (_list_catch_ups(runs, policy, job, kind) for policy in ("tidewise", RIVAL))
        if not ours or not theirs or max(age for _, age in (*ours, *theirs)) <= ERROR_MAX_S:
            continue
        mine, other = (statistics.median([minutes for minutes, _ in rows]) for rows in (ours, theirs))
        if mine >= other > 0 and other < float("inf"):
            shown = "not within the event" if mine == float("inf") else f"after {mine:.1f} minutes"
            yield f"tidewise, {job}, {kind}: caught up {shown}, {RIVAL} after {other:.1f}"


def _list_catch_ups(runs: Sequence[Mapping[str, Any]], policy: str, job: str, kind: str) -> list[tuple[float, float]]:
    """Return (minutes to caught up, largest age in s) of each run; 0 minutes where nothing waited for long."""
    rows = [row for run in runs for row in run["outcomes"].get(policy, {}).get(job, ()) if row["kind"] == kind]
    result = []
    for row in rows:
        age = row["largest_age_s"] or 0.0
        minutes = row["caught_up_minutes"]
        result.append((0.0 if age <= ERROR_MAX_S else float("inf") if minutes is None else minutes, age))
    return result
