"""One sentence per step that a person understands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.scheduling.step_placing import JobConditions
from models.arrays import Floats
from models.scheduling.figures import format_clock, format_count, format_duration, format_rate
from models.scheduling.rescale_timing import ScheduleStep
from models.scheduling.shortage import explain_limit
from models.scheduling.slot_counts import count_slots_of_rows

_LARGE = 0.8  # what uses less than this share at the 90% load was too large
_NAMED = 3  # operators named one by one; of the others only the number


def explain_step(
    step: ScheduleStep, since: int, job: JobConditions, load_per_s: Floats, *, is_weighed: bool = False
) -> str:
    """Return the reason of a step.

    Args:
        step: the step.
        since: first bin of what it replaces, for comparison.
        job: what it was made from.
        load_per_s: (T,) total load at the planning quantile.
        is_weighed: whether slots were weighed against lateness, so that a capacity below the load is on purpose.
    """
    names = job.outlook.demand.operators
    parts = (
        [_describe_hold(step, job, load_per_s)]
        if step.is_hold
        else [_describe_load(step, since, job, load_per_s), _describe_changes(step, names)]
    )
    if not step.is_hold:
        parts += [_describe_excess(step, since, job), _describe_timing(step)]
    if is_weighed:
        parts.append(_describe_shortfall(step, job))
    need = job.need
    parts += [_describe_shortage(step, job), _describe_doubts(job)]
    parts += [_describe_kept("no capacity model", need.unmodelled), _describe_kept(_UNKNOWN, need.unknown)]
    return "; ".join(filter(None, parts))


_UNKNOWN = "its share of the records is not known"


def _quantile(job: JobConditions) -> str:
    return f"load q{100 * job.options.load_quantile:g}"


def _describe_load(step: ScheduleStep, since: int, job: JobConditions, load: Floats) -> str:
    peak = float(load[step.begin : step.end].max())
    if step.begin == 0:
        return f"{_quantile(job)} is up to {format_rate(peak)}/s from now on"
    before, at = float(load[since : step.begin].max()), format_clock(step.effective_at_s, job.as_of_s)
    if format_rate(before) == format_rate(peak):
        return f"{_quantile(job)} stays near {format_rate(peak)}/s from {at}"
    verb = "rises" if peak > before else "falls"
    return f"{_quantile(job)} {verb} from {format_rate(before)}/s to {format_rate(peak)}/s at {at}"


def _describe_changes(step: ScheduleStep, names: Sequence[str]) -> str:
    pairs = zip(names, step.parallelism_from, step.parallelism_to, strict=True)
    slots = (step.slots_from, step.slots)
    changed = sorted(  # first those that decide the slots, then the largest changes
        ((name, int(before), int(after)) for name, before, after in pairs if before != after),
        key=lambda change: (change[1:] != slots, -abs(change[2] - change[1]), change[0]),
    )
    parts = [f"{name} needs {after} instead of {before}" for name, before, after in changed[:_NAMED]]
    more = len(changed) - _NAMED
    return ", ".join(parts) + (f" and {more} more change" if more > 0 else "")


def _describe_excess(step: ScheduleStep, since: int, job: JobConditions) -> str:
    """Say that what runs is too large already, which no change of the load explains."""
    if step.slots >= step.slots_from:
        return ""
    begin, end = (since, step.begin) if step.begin > since else (step.begin, step.end)
    before = job.outlook.expect(step.parallelism_from, begin, end)
    used = before.load_q90_per_s / before.capacity_per_s if 0 < before.capacity_per_s < np.inf else 1.0
    if used >= _LARGE:
        return ""
    sustains = f"sustains {format_rate(before.capacity_per_s)}/s with {format_count(step.slots_from, 'slot')}"
    return f"was too large: {sustains}, of which load q90 uses {used:.0%}"


def _describe_shortfall(step: ScheduleStep, job: JobConditions) -> str:
    """Say why a step is planned that sustains less than the 90% load."""
    expected = step.expected
    load, capacity = format_rate(expected.load_q90_per_s), format_rate(expected.capacity_per_s)
    is_clipped = job.need.short[:, step.begin : step.end].any()
    if is_clipped or expected.capacity_per_s >= expected.load_q90_per_s or load == capacity:
        return ""
    return f"sustains {capacity}/s, less than load q90: more slots would cost more than the late minutes they prevent"


def _describe_timing(step: ScheduleStep) -> str:
    if step.lead_time_s:
        return f"applied {format_duration(step.lead_time_s)} ahead"
    if step.slots < step.slots_from:
        return f"saves {step.slot_hours_saved:.1f} slot-hours"
    return "due at once" if step.begin == 0 else "applied when it is needed"


def _describe_hold(step: ScheduleStep, job: JobConditions, load: Floats) -> str:
    peak = int(load.argmax())
    at = format_clock(max(job.outlook.demand.bin_start_s(peak), job.as_of_s), job.as_of_s)
    is_short = job.need.short[:, step.begin : step.end].any()
    covers = "for which no other size would do more" if is_short else "which the running parallelism covers"
    text = f"{_quantile(job)} peaks at {format_rate(float(load[peak]))}/s at {at}, {covers}"
    enough = int(count_slots_of_rows(job.need.parallelism.T, job.groups).max())
    if enough < step.slots:
        text += f"; {format_count(enough, 'slot')} instead of {step.slots} would not save what a rescale costs"
    return text


def _describe_shortage(step: ScheduleStep, job: JobConditions) -> str:
    rows = np.flatnonzero(job.need.short[:, step.begin : step.end].any(axis=1))
    if not len(rows):
        return ""
    names = job.outlook.demand.operators
    limited = _list([f"{names[row]} (at most {job.limits[row]})" for row in rows])
    text = f"clipped to the maximum, which does not cover the load: {limited}"
    if not job.operators:
        return text
    of_help: dict[str, list[str]] = {}
    for row in rows:
        of_help.setdefault(explain_limit(job.operators[row], int(job.limits[row])), []).append(names[row])
    return "; ".join([text, *(f"{_list(short)} cannot grow and is short: {why}" for why, short in of_help.items())])


def _list(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _describe_doubts(job: JobConditions) -> str:
    return "; ".join(
        f"capacity of {one.operator} is doubtful: it processes {format_rate(one.processed_per_s)}/s, its model allows "
        f"{format_rate(one.capacity_per_s)}/s; a training on newer windows would help"
        for one in job.doubts[:_NAMED]
    )


def _describe_kept(why: str, names: Sequence[str]) -> str:
    return f"{why}, so parallelism kept: {', '.join(names)}" if names else ""
