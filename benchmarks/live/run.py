"""One run: a policy on a job, a cluster of its own, the load of the window, and a TaskManager that is lost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from benchmarks.live.calibration import Calibration
from benchmarks.live.instruments import Instruments
from benchmarks.live.live_job import (
    JOBS,
    SLOTS,
    START_UTILISATION,
    TASK_MANAGERS,
    set_cluster,
)
from benchmarks.live.load_window import BIN_S, Trace, integrate
from benchmarks.live.measures import Moment, Prices, Reading, RunSpan, fill_gaps, measure
from benchmarks.live.policies import POLICIES, deciding
from benchmarks.live.results import RunResult
from benchmarks.live.settings import Pace
from benchmarks.nexmark.cpu import CpuMeter
from include.flink.faults import FlinkError
from include.settings import Planner
from lab.local_flink.cluster import LocalCluster
from lab.local_flink.job_client import JobClient

T = TypeVar("T", Reading, Moment)

LATE = 1
"""The TaskManager that is lost, or comes late."""
LOST_FOR_S = 30.0
"""A lost TaskManager is back after so many seconds, as a pod that is started again."""
_STARTS_S, _REPLIES_S, _DRAINS_S = 180.0, 60.0, 420.0
_STILL_S = 25.0
"""Counts that two fetches of metrics (10 s each) did not change are the last."""
_SAY_EVERY_S = 60.0
_LINE_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class Part:
    """What makes a run a part of a longer one, each on a cluster of its own, whose job goes on from a savepoint.

    Attributes:
        number: from 1 on.
        starts_s: seconds from the first part's submission to this one.
        settings: further ones of Flink.
        savepoint: that it goes on from; empty: it is the first.
        savepoints: folder of the one that ends it.
        beside: goes on while the policy decides.
        slots: what the job was asked for last; None: it is the first part.
    """

    number: int
    starts_s: float
    settings: Mapping[str, str]
    savepoint: str
    savepoints: Path
    beside: AbstractContextManager[None]
    slots: int | None = None


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is run.

    Attributes:
        policy: key of ``POLICIES``.
        seed: of the load's noise.
        minutes: of the window as asked for.
        trace_name: of the public trace.
        trace: (second since the submission, that of the first part, events/s) with the lead before the window.
        begins_s: epoch seconds of the window's begin.
        pace: of the run.
        loses: whether a TaskManager is lost in the middle.
        part: of a longer run; None: it is whole.
    """

    policy: str
    seed: int
    minutes: float
    trace_name: str
    trace: Trace
    begins_s: float
    pace: Pace
    loses: bool = True
    part: Part | None = None

    @property
    def starts_s(self) -> float:
        """Second of the trace at which the job is submitted."""
        return 0.0 if self.part is None else self.part.starts_s

    @property
    def span_s(self) -> tuple[float, float]:
        """Begin and end of the window, seconds since the submission."""
        begin_s = self.starts_s + self.pace.lead_s
        return begin_s, begin_s + 60 * self.minutes


def read_prices() -> Prices:
    """Return the prices of the product's default settings."""
    costs = Planner().costs
    return Prices(costs.late_after_s, costs.resource_weight, costs.late_weight, costs.rescale_weight)


def run_policy(
    plan: RunPlan, calibration: Calibration, folder: Path, jar: Path | None, say: Callable[[str], None]
) -> RunResult:
    """Run a policy and return what the job's instruments showed.

    Args:
        plan: of the run.
        calibration: of the job.
        folder: of the run; below it the controller finds the lake of a policy that has one.
        jar: of Flink's autoscaler.
        say: prints a line.
    """
    policy, live, part = POLICIES[plan.policy], JOBS[calibration.query], plan.part
    first_per_s = integrate(plan.trace, plan.starts_s, plan.starts_s + 1)
    first = calibration.find_parallelism(first_per_s, START_UTILISATION)
    if part is not None and part.slots is not None:
        first = part.slots  # another would be somebody's change, after which the controller leaves the job alone
    if policy.starts_at_peak:
        first = calibration.find_parallelism(max(rate for _, rate in plan.trace), START_UTILISATION)
    pace = plan.pace.autoscaler if policy.settings else {}
    further = {} if part is None else part.settings
    options = set_cluster({**policy.settings, **pace, **further}, is_short=plan.pace.is_short)
    place = folder / ("flink" if part is None else f"flink-{part.number}")
    with LocalCluster(place, options, ready_timeout_s=_STARTS_S) as cluster:
        client = JobClient(cluster.rest_url, read_timeout_s=_REPLIES_S)
        if plan.pace.slots_after_s:
            cluster.kill_taskmanager(LATE)
            first = min(first, SLOTS // TASK_MANAGERS)
        if (wait_s := plan.begins_s - plan.pace.lead_s - time.time()) > 0:
            say(f"{plan.policy}: the load begins in {wait_s:.0f} s")
            time.sleep(wait_s)
        submitted_s, start_ms, savepoint = time.time(), 0, ""
        if part is not None:  # the clock of the load goes on
            submitted_s, savepoint = plan.begins_s - plan.span_s[0], part.savepoint
            start_ms = round(1000 * submitted_s)
        job_id = live.submit(client, cluster.work_dir, plan.trace, first, start_ms=start_ms, savepoint=savepoint)
        count_due = partial(integrate, plan.trace, 0.0)
        instruments = Instruments(client, job_id, calibration.costly, submitted_s, count_due)
        with instruments.reading():
            with (
                deciding(policy, client, folder, plan.pace, jar) as find_trouble,
                nullcontext() if part is None else part.beside,
            ):
                cpu, lost_at_s, trouble = _follow(plan, cluster, instruments, find_trouble, say)
            checkpoint_s = _read_checkpoint_s(client, job_id)
            counts = _drain(client, job_id, instruments, plan, say) if not trouble else (None, None)
        known, rows, ended = counts[0] is not None, None, ""
        if part is not None and not trouble:
            ended = client.stop_with_savepoint(job_id, part.savepoints)
        elif counts[0] is not None:
            rows = live.count_expected_rows(counts[0], cluster.work_dir)
    span = RunSpan(plan.trace, plan.span_s, lost_at_s, SLOTS)
    begin_s, end_s = plan.span_s
    return RunResult(
        policy=plan.policy,
        job=calibration.query,
        seed=plan.seed,
        minutes=plan.minutes,
        pace=plan.pace.name,
        trace=plan.trace_name,
        begun=datetime.fromtimestamp(submitted_s + begin_s, UTC).isoformat(timespec="seconds"),
        cpu_share=cpu,
        trouble=trouble,
        slots_max=SLOTS,
        lost_at_s=None if lost_at_s is None else lost_at_s - begin_s,
        measures=measure(instruments.readings, span, read_prices()),
        records_in=counts[0],
        records_due=int(integrate(plan.trace, 0, plan.trace[-1][0])) if known else None,
        rows_out=counts[1],
        rows_expected=rows,
        lines=_thin_out(instruments.readings, plan.trace, (begin_s, end_s)),
        actions=_list_actions(instruments.readings),
        load=list(plan.trace),
        span_s=plan.span_s,
        transits=_list_transits(instruments.readings, (begin_s, end_s)),
        checkpoint_s=checkpoint_s,
        savepoint=ended,
    )


def _read_checkpoint_s(client: JobClient, job_id: str) -> float | None:
    """Return the median duration of the job's checkpoints; None where Flink shows none."""
    try:
        shown = client.checkpoints(job_id)["summary"]["end_to_end_duration"]["p50"]
    except (FlinkError, KeyError):
        return None
    return float(shown) / 1000 if math.isfinite(float(shown)) else None


def _follow(
    plan: RunPlan,
    cluster: LocalCluster,
    instruments: Instruments,
    find_trouble: Callable[[], str],
    say: Callable[[str], None],
) -> tuple[float, float | None, str]:
    """Wait until the end of the window; returns the share of busy processors, when a TaskManager was lost, trouble."""
    begin_s, end_s = plan.span_s
    lose_at_s = (begin_s + end_s) / 2
    cpu, lost_at_s, next_say_s, trouble, is_lost = None, None, 0.0, "", False
    come_at_s = math.inf if plan.pace.slots_after_s else math.nan
    while not trouble:
        at_s = instruments.readings[-1].at_s if instruments.readings else 0.0
        if at_s > end_s:
            break
        if cpu is None and at_s >= begin_s:
            cpu = CpuMeter()
        if plan.loses and lost_at_s is None and at_s >= lose_at_s:
            say(f"{plan.policy}: a TaskManager is lost for {LOST_FOR_S:g} s")
            cluster.kill_taskmanager(LATE)
            lost_at_s, is_lost = at_s, True
        if is_lost and lost_at_s is not None and at_s >= lost_at_s + LOST_FOR_S:
            # In this thread: with the one that starts it a child process ends.
            cluster.start_taskmanager(LATE, wait=False)
            is_lost = False
        wanted = instruments.readings[-1].wanted[1] if instruments.readings else 0
        if come_at_s == math.inf and wanted > SLOTS // TASK_MANAGERS:
            come_at_s = at_s + plan.pace.slots_after_s
            say(f"{plan.policy}: slots of the second TaskManager are asked for")
        if at_s >= come_at_s:
            say(f"{plan.policy}: the second TaskManager starts")
            cluster.start_taskmanager(LATE, wait=False)
            come_at_s = math.nan
        if at_s >= next_say_s and instruments.readings:
            next_say_s = at_s + _SAY_EVERY_S
            say(_describe(plan, instruments.readings[-1], cpu))
        trouble = find_trouble() or instruments.trouble
        time.sleep(0.5)
    if is_lost or math.isfinite(come_at_s) or come_at_s == math.inf:
        cluster.start_taskmanager(LATE, wait=False)
    return (1.0 if cpu is None else cpu.in_all()), lost_at_s, trouble


def _describe(plan: RunPlan, last: Reading, cpu: CpuMeter | None) -> str:
    minute = (last.at_s - plan.span_s[0]) / 60
    if not last.is_up:
        return f"{plan.policy}: {minute:5.1f} of {plan.minutes:g} min, the job is down"
    ages = [age for age in (last.source_age_s, last.sink_age_s) if math.isfinite(age)]
    busy = "" if cpu is None else f", processors {cpu.take():.0%} busy"
    return (
        f"{plan.policy}: {minute:5.1f} of {plan.minutes:g} min, {last.slots} slots, backlog {last.pending:.0f}, "
        f"oldest record {max(ages, default=0.0):.1f} s{busy}"
    )


def _drain(
    client: JobClient, job_id: str, instruments: Instruments, plan: RunPlan, say: Callable[[str], None]
) -> tuple[int | None, int | None]:
    """Let the job work off everything with all slots; returns what source and sink have counted, None: it did not."""
    try:
        client.put_resource_requirements(job_id, dict.fromkeys(client.upper_bounds(job_id), SLOTS))
    except FlinkError as error:
        say(f"{plan.policy}: {error}")
    deadline_s, still_since_s, before = time.monotonic() + _DRAINS_S, time.monotonic(), (-1, -1)
    while time.monotonic() < deadline_s:
        last, counts = instruments.readings[-1], (instruments.emitted, instruments.received)
        is_empty = last.is_up and last.slots == SLOTS and last.pending == 0
        if counts != before or not is_empty:
            before, still_since_s = counts, time.monotonic()
        elif time.monotonic() - still_since_s > _STILL_S:
            return counts
        time.sleep(0.5)
    say(f"{plan.policy}: the backlog was not worked off within {_DRAINS_S:g} s of the end; nothing is known of losses")
    return None, None


def _thin_out(
    readings: Sequence[Reading], trace: Trace, span_s: tuple[float, float]
) -> list[tuple[float, float, int, float, float]]:
    """Return what the page draws: of every ten seconds (second of the window, load/s, slots, age, backlog)."""
    result: list[tuple[float, float, int, float, float]] = []
    for one in _pick(fill_gaps(readings, trace), span_s):
        load = integrate(trace, one.at_s, one.at_s + 1)
        result.append((one.at_s - span_s[0], round(load, 1), one.slots, round(one.age_s, 1), round(one.backlog)))
    return result


def _list_transits(readings: Sequence[Reading], span_s: tuple[float, float]) -> list[tuple[float, float]]:
    """Return how long records were under way from source to sink, of every ten seconds in which both ages are known."""
    known = [one for one in readings if math.isfinite(one.sink_age_s - one.source_age_s)]
    return [
        (round(one.at_s - span_s[0], 1), round(one.sink_age_s - one.source_age_s, 1)) for one in _pick(known, span_s)
    ]


def _pick(moments: Iterable[T], span_s: tuple[float, float]) -> Iterator[T]:
    """Yield the first of every ten seconds of a window."""
    next_s = span_s[0]
    for one in moments:
        if next_s <= one.at_s <= span_s[1]:
            yield one
            next_s += _LINE_EVERY_S * (1 + (one.at_s - next_s) // _LINE_EVERY_S)


def _list_actions(readings: Sequence[Reading]) -> list[tuple[float, int]]:
    """Return (second since the submission, upper bound of the costly vertex) of every change, the first bound too."""
    known = [(one.at_s, one.wanted[0]) for one in readings if one.wanted[0]]
    return known[:1] + [after for before, after in pairwise(known) if after[1] != before[1]]


def round_up_minutes(minutes: float) -> float:
    """Return the length of a window of whole bins."""
    return -(-minutes * 60 // BIN_S) * BIN_S / 60
