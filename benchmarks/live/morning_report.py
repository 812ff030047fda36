"""What the parts of a morning came to together: figures and tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.live.calibration import Calibration
from benchmarks.live.hourly_runs import HourRun, PlannedStep, list_due_steps
from benchmarks.live.morning_load import LaidTrace, Request, holds_rise, list_requests
from benchmarks.live.results import CPU_MAX, RunResult, form_values, parse_result
from include.atomic_write import write_json

STEP_WITHIN_S = 600.0
"""A request belongs to a planned step that is due so long before or after it: a bin of a plan."""
_LOAD_EVERY_S = 10
_SUMS = ("late_minutes", "slot_hours", "rescales", "down_s", "cost")


@dataclass(frozen=True, slots=True)
class PartResult:
    """A part: what the job's instruments showed, and the runs of the hourly DAG."""

    run: RunResult
    hours: list[HourRun]


def write_part(folder: Path, number: int, part: PartResult) -> None:
    """Write a part, by which the next call knows that it was made."""
    path = folder / "parts" / f"{number}.json"
    path.parent.mkdir(exist_ok=True)
    write_json(path, {"run": form_values(part.run), "hours": [asdict(one) for one in part.hours]})


def read_parts(folder: Path) -> list[PartResult]:
    """Read the parts so far, in order."""
    result = []
    for path in sorted((folder / "parts").glob("*.json"), key=lambda one: int(one.stem)):
        values = json.loads(path.read_text(encoding="utf-8"))
        hours = [{**one, "steps": [PlannedStep(**step) for step in one["steps"]]} for one in values["hours"]]
        result.append(PartResult(parse_result(values["run"]), [HourRun(**one) for one in hours]))
    return result


@dataclass(frozen=True, slots=True)
class Morning:
    """All parts together.

    Attributes:
        spans_s: measured windows of the parts, epoch seconds.
        rise_s: begin and end of the rise, epoch seconds.
        rise_in: number of the part that holds it whole; None: none does.
        maintenance_s: between the windows of the parts, not measured.
        sums: of the parts' figures by their names in :class:`~benchmarks.live.measures.Measures`.
        cpu_shares: of the processors that were busy, part by part.
        records_lost: None: not known, or not counted before the end.
        hours: runs of the DAG.
        due: planned steps that came due, and what was asked for: see :func:`match_step`.
        requests: what the job was asked to run on.
        rise_leads_s: leads of the requests for more slots whose former ones the load passed from the trough to the
            rise's end.
    """

    spans_s: list[tuple[float, float]]
    rise_s: tuple[float, float]
    rise_in: int | None
    maintenance_s: float
    sums: dict[str, float]
    cpu_shares: list[float]
    records_lost: int | None
    hours: list[HourRun]
    due: list[tuple[PlannedStep, str]]
    requests: list[Request]
    rise_leads_s: list[float]


def join_parts(
    parts: Sequence[PartResult],
    laid: LaidTrace,
    submitted_s: float,
    calibration: Calibration,
    rows_expected: int | None,
) -> Morning:
    """Return the figures of all parts together.

    Args:
        parts: in order.
        laid: the load by the clock.
        submitted_s: epoch seconds of the first submission.
        calibration: of the job.
        rows_expected: that the query gives for all records of the last part's source; None: not counted.
    """
    spans = [(submitted_s + one.run.span_s[0], submitted_s + one.run.span_s[1]) for one in parts]
    carried = np.array([calibration.capacity_per_s(slots) for slots in range(parts[0].run.slots_max + 1)])
    requests: list[Request] = []
    for (begin_s, end_s), part in zip(spans, parts, strict=True):
        at = np.arange(begin_s, end_s, _LOAD_EVERY_S)
        load = list(zip(at.tolist(), laid.rates(at).tolist(), strict=True))
        actions = [(submitted_s + at_s, slots) for at_s, slots in part.run.actions if submitted_s + at_s <= end_s]
        requests += [one for one in list_requests(actions, load, carried) if one.at_s >= begin_s]
    hours, rows = [hour for one in parts for hour in one.hours], parts[-1].run.rows_out
    passes = ((one.at_s + one.lead_s, one.lead_s) for one in requests if one.lead_s is not None)
    return Morning(
        spans_s=spans,
        rise_s=laid.rise_s,
        rise_in=next((number for number, span in enumerate(spans, 1) if holds_rise(span, laid.rise_s)), None),
        maintenance_s=sum(after[0] - before[1] for before, after in pairwise(spans)),
        sums={name: sum(getattr(one.run.measures, name) for one in parts) for name in _SUMS},
        cpu_shares=[one.run.cpu_share for one in parts],
        records_lost=None if rows_expected is None or rows is None else rows_expected - rows,
        hours=hours,
        due=[(step, match_step(step, requests)) for step in list_due_steps(hours, spans)],
        requests=requests,
        rise_leads_s=[lead_s for at_s, lead_s in passes if laid.trough_s <= at_s <= laid.rise_s[1]],
    )


def match_step(step: PlannedStep, requests: Sequence[Request]) -> str:
    """Return what became of a planned step: "as planned", the other slots that were asked for, or "not sent"."""
    near = [one for one in requests if abs(one.at_s - step.at_s) <= STEP_WITHIN_S]
    if any(one.after == step.after for one in near):
        return "as planned"
    return f"{near[0].before} -> {near[0].after}" if near else "not sent"


def format_morning(morning: Morning, title: str) -> str:
    """Return the tables of a morning."""
    sums, minutes = morning.sums, sum(end - begin for begin, end in morning.spans_s) / 60
    done = sum(not one.trouble for one in morning.hours)
    carried_out = sum(answer == "as planned" for _, answer in morning.due)
    whole = f"whole within part {morning.rise_in}" if morning.rise_in else "not whole within a part"
    spans = ", ".join(f"{_clock(begin)} to {_clock(end)}" for begin, end in morning.spans_s)
    busy = [f"{one:.0%}{'' if one <= CPU_MAX else ' (too busy: no measurement)'}" for one in morning.cpu_shares]
    figures = [
        ("measured", f"{minutes:.0f} minutes: {spans} UTC"),
        ("stopped between parts, not measured", f"{morning.maintenance_s / 60:.0f} minutes"),
        ("the rise", f"{_clock(morning.rise_s[0])} to {_clock(morning.rise_s[1])} UTC, {whole}"),
        ("runs of the hourly DAG that succeeded", f"{done} of {len(morning.hours)}"),
        ("planned steps that came due, and were asked for as planned", f"{len(morning.due)}, {carried_out}"),
        ("lead before the load of the rise, s", ", ".join(f"{one:.0f}" for one in morning.rise_leads_s) or "none"),
        ("late minutes", f"{sums['late_minutes']:.2f}"),
        ("slot-hours", f"{sums['slot_hours']:.2f}"),
        ("rescales", f"{sums['rescales']:.0f}"),
        ("down", f"{sums['down_s']:.0f} s"),
        ("cost", f"{sums['cost']:.2f}"),
        ("records lost", "not known" if morning.records_lost is None else str(morning.records_lost)),
        ("processors busy", ", ".join(busy)),
    ]
    hours = [(_clock(one.due_s), f"{one.seconds:.0f}", _say_plan(one)) for one in morning.hours]
    due = [(_clock(step.at_s), f"{step.before} -> {step.after}", answer) for step, answer in morning.due]
    requests = [
        (_clock(one.at_s), f"{one.before} -> {one.after}", "" if one.lead_s is None else f"{one.lead_s:.0f}")
        for one in morning.requests
    ]
    tables = [
        _format_table((title, ""), figures),
        _format_table(("DAG run", "took, s", "its plan"), hours),
        _format_table(("planned step due", "slots", "asked for"), due),
        _format_table(("request", "slots", "lead, s"), requests),
    ]
    return "\n\n".join(tables) + "\n"


def _say_plan(hour: HourRun) -> str:
    if hour.trouble:
        return f"failed: {hour.trouble.splitlines()[0]}"
    return ", ".join(f"{_clock(one.at_s)} {one.before} -> {one.after}" for one in hour.steps) or hour.answer


def _format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


def _clock(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%H:%M:%S}"
