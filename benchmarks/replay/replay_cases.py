"""Cases of the replay: a trace and a job, whose candidate policies are divided over processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.managers import SyncManager
from queue import Empty, Queue
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.replay.autoscaler_java.jar_driver import NAME as JAR
from benchmarks.replay.autoscaler_java.jar_driver import AutoscalerProcess, JarDriver, list_options
from benchmarks.replay.cpu_estimate import estimate_cpu_s
from benchmarks.replay.fleet_prior_value import learn_prior_without
from benchmarks.replay.replay_candidates import BOUND, Forms, build_candidates
from benchmarks.replay.replay_jobs import PEAK_SHARE, read_job
from benchmarks.replay.replay_traces import BIN_S, Trace
from include.utc import DAY_S
from lab.commands.workers import end_with_parent, stop_workers
from lab.replay.ablations import FLEET
from lab.replay.bound.solve_bound import BoundDriver, solve_bound
from lab.replay.candidate_policies import CandidatePolicy
from lab.replay.conditions import Conditions
from lab.replay.replay_run import ReplayRun
from lab.replay.rises import measure_rises
from lab.replay.scores import SEGMENTS, compute_score, find_span
from models.arrays import Floats

Row = dict[str, str | int | float | None]
FLOOR = "clairvoyant"
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class ReplayCase:
    """What is replayed in one call, by one process or by several.

    Attributes:
        trace, job: the trace and the name or file of the job.
        policies: names of candidates.
        seeds: of each.
        conditions: of the run.
        peak_share: of the slots that the peak needs.
        forms: further candidate -> the form in which another one runs.
    """

    trace: Trace
    job: str
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    conditions: Conditions
    peak_share: float = PEAK_SHARE
    forms: Forms = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Result of a case.

    Attributes:
        rows: the figures, without the comparison with the clairvoyant; those of the bound hold its value.
        slots: policy -> (W,) slots with the first seed, for the plot.
        arrivals_per_s: (W, S).
        refused: policy -> requests for a rescale that came too soon, all seeds.
    """

    rows: list[Row]
    slots: dict[str, Floats]
    arrivals_per_s: Floats
    refused: dict[str, int]


def divide(policies: Sequence[str], processes: int) -> list[tuple[str, ...]]:
    """Return the policies of each process so that none has much more to do; the order within each is kept."""
    loads = [0.0] * max(1, min(processes, len(policies)))
    parts: list[list[str]] = [[] for _ in loads]
    for name in sorted(policies, key=lambda name: -estimate_cpu_s(name)):
        least = loads.index(min(loads))
        loads[least] += estimate_cpu_s(name)
        parts[least].append(name)
    return [tuple(name for name in policies if name in names) for names in parts]


def replay_case(case: ReplayCase, progress: Callable[[int], None] | None = None) -> CaseResult:
    """Run the candidates of a case in this process.

    Args:
        case: what to run.
        progress: called with the number of windows done.
    """
    conditions = case.conditions
    if FLEET in case.policies:
        conditions = replace(conditions, fleet=learn_prior_without(case.job, conditions.disturbances))
    cadence = conditions.cadence
    workload = read_job(case.job).build_workload(case.trace, cadence.step_s, case.peak_share)
    named = [name for name in case.policies if name not in {JAR, BOUND}]
    built = build_candidates(named, workload, conditions, case.forms)
    bounds = {seed: solve_bound(workload, seed, conditions) for seed in case.seeds if BOUND in case.policies}
    if bounds:
        built.append(CandidatePolicy(BOUND, BoundDriver(bounds), asks_in_restarts=True))
    with threadpool_limits(limits=1), ExitStack() as stack:
        if JAR in case.policies:
            process = stack.enter_context(AutoscalerProcess(list_options(workload.spec.slots_max)))
            built.append(CandidatePolicy(JAR, JarDriver(process)))
        run = ReplayRun(workload, built, case.seeds, conditions)
        result = run.run(progress)
    windows = len(result.ledger.slots)
    rows: list[Row] = []
    for place, (policy, seed) in enumerate(zip(result.names, result.seeds, strict=True)):
        for segment in SEGMENTS:
            span = find_span(segment, windows, cadence.window_s)
            if span.start >= span.stop:
                continue
            within_s = span.start * cadence.window_s, span.stop * cadence.window_s
            score = compute_score(
                result.ledger,
                place,
                span,
                window_s=cadence.window_s,
                slots_max=workload.spec.slots_max,
                prices=conditions.prices,
            )
            rows.append(
                {
                    "trace": case.trace.name,
                    "job": workload.spec.name,
                    "policy": policy,
                    "seed": seed,
                    "segment": segment,
                    "days": windows * cadence.window_s / DAY_S,
                    **asdict(score),
                    **asdict(measure_rises(workload, run.state.engine.asked[place], *within_s)),
                    "bound": bounds[seed].least[segment] if policy == BOUND else None,
                }
            )
    first = {name: result.names.index(name) for name in case.policies}
    slots = {name: result.ledger.slots[:, place] for name, place in first.items()}
    refused = {
        name: int(sum(count for other, count in zip(result.names, result.refused, strict=True) if other == name))
        for name in case.policies
    }
    return CaseResult(rows, slots, result.arrivals_per_s, refused)


def merge(parts: Sequence[CaseResult], policies: Sequence[str]) -> CaseResult:
    """Put the parts of a case together, in the order of the policies, each row compared with the references."""
    order = {name: place for place, name in enumerate(policies)}
    rows = sorted((row for part in parts for row in part.rows), key=lambda row: order[str(row["policy"])])
    slots = {name: part.slots[name] for name in policies for part in parts if name in part.slots}
    refused = {name: part.refused[name] for name in policies for part in parts if name in part.refused}
    return CaseResult(compare_rows(rows), slots, parts[0].arrivals_per_s, refused)


def compare_rows(rows: Sequence[Row]) -> list[Row]:
    """Return rows with the bound of their load, seed and segment, where it was computed, and the costs over references.

    Those are the bound and the clairvoyant's cost.
    """
    least = {find_place(row): row.get("bound") for row in rows if row["policy"] == BOUND}
    floor = {find_place(row): row["cost"] for row in rows if row["policy"] == FLOOR}
    result: list[Row] = []
    for row in rows:
        bound, clairvoyant = least.get(find_place(row)), floor.get(find_place(row))
        known: Row = {"bound": bound, "cost_vs_bound": _divide_costs(row["cost"], bound)}
        result.append({**row, **known, "cost_vs_clairvoyant": _divide_costs(row["cost"], clairvoyant)})
    return result


def find_place(row: Row) -> tuple[object, ...]:
    """Return what rows that can be compared have in common: trace, job, seed and segment."""
    return tuple(row[column] for column in ("trace", "job", "seed", "segment"))


def _divide_costs(cost: str | float | None, least: str | float | None) -> float | None:
    return float(cost) / float(least) if least and cost is not None else None


def count_windows(case: ReplayCase) -> int:
    """Return the windows of a case, for a progress bar."""
    return len(case.trace.values) * BIN_S // case.conditions.cadence.window_s


def replay_in_processes(case: ReplayCase, processes: int, progress: Callable[[int], None] | None = None) -> CaseResult:
    """Run all candidates of a case, in several processes if there are several candidates.

    Args:
        case: what to run.
        processes: at most so many.
        progress: called with the number of windows done, the mean over the processes: each runs through all of them.
    """
    parts = [replace(case, policies=names) for names in divide(case.policies, processes)]
    if len(parts) == 1:
        return merge([replay_case(parts[0], progress)], case.policies)
    context = multiprocessing.get_context("spawn")
    manager = SyncManager(ctx=context)
    manager.start(end_with_parent)
    with manager:
        done: Queue[tuple[int, int]] = manager.Queue()
        with ProcessPoolExecutor(len(parts), mp_context=context, initializer=end_with_parent) as pool, stop_workers():
            waiting = [pool.submit(_replay_part, part, place, done) for place, part in enumerate(parts)]
            reached = [0] * len(parts)
            while not all(future.done() for future in waiting):
                if any(future.done() and future.exception() for future in waiting):
                    pool.shutdown(wait=False, cancel_futures=True)
                    break
                try:
                    place, windows = done.get(timeout=_POLL_S)
                except Empty:
                    continue
                reached[place] = windows
                if progress is not None:
                    progress(sum(reached) // len(parts))
            return merge([future.result() for future in waiting], case.policies)


def _replay_part(part: ReplayCase, place: int, done: Any) -> CaseResult:
    return replay_case(part, lambda windows: done.put((place, windows)))
