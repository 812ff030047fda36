"""Runs of the replay: a trace and a job are a run, whose candidate policies are split over processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing.managers import SyncManager
from queue import Empty, Queue
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.replay.fleet import prior_without
from benchmarks.replay.replay_jobs import job_of
from benchmarks.replay.traces import BIN_S, Trace
from cli.workers import end_with_parent, stop_workers
from models.evaluation.ablations import FLEET
from models.evaluation.candidate_policies import candidate_policies
from models.evaluation.replay_run import Conditions, ReplayRun
from models.evaluation.scores import SEGMENTS, score, span_of
from models.simulation.spec import FloatArray, IntArray

Row = dict[str, str | int | float | None]
FLOOR = "clairvoyant"
# Rough seconds that a candidate policy takes for three days of the 8-operator graph: the processes should end together.
_COSTS = {
    "rl_decentralised": 8.0,
    "dragster_gradient": 4.0,
    "conttune_a3": 3.0,
    "conttune_a0": 3.0,
    "planner": 2.5,
    "dragster_saddle": 2.5,
    "rl": 2.0,
    "rl_plus": 2.0,
    "mdp": 1.5,
}
_COST = 0.8  # of the others
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Run:
    """What one process does.

    Attributes:
        trace, job: the trace and the name or file of the job.
        policies: candidate policies.
        seeds: of each.
        conditions: of the run.
    """

    trace: Trace
    job: str
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    conditions: Conditions


@dataclass(frozen=True, slots=True)
class Found:
    """Results of a run.

    Attributes:
        rows: the figures, without the comparison with the clairvoyant.
        slots: policy -> (W,) slots with the first seed, for the plot.
        arrivals_per_s: (W, S).
        refused: policy -> wishes for a rescale that came too soon, all seeds.
    """

    rows: list[Row]
    slots: dict[str, IntArray]
    arrivals_per_s: FloatArray
    refused: dict[str, int]


def shares(policies: Sequence[str], processes: int) -> list[tuple[str, ...]]:
    """Return the policies dealt to processes so that none has much more to do; the order within each is kept."""
    loads = [0.0] * max(1, min(processes, len(policies)))
    dealt: list[list[str]] = [[] for _ in loads]
    for name in sorted(policies, key=lambda name: -_COSTS.get(name, _COST)):
        least = loads.index(min(loads))
        loads[least] += _COSTS.get(name, _COST)
        dealt[least].append(name)
    return [tuple(name for name in policies if name in names) for names in dealt]


def simulate(run: Run, progress: Callable[[int], None] | None = None) -> Found:
    """Run some candidate policies.

    Args:
        run: what to do.
        progress: told how many windows are done.
    """
    conditions = run.conditions
    if FLEET in run.policies:
        conditions = replace(conditions, fleet=prior_without(run.job, conditions.around))
    cadence = conditions.cadence
    workload = job_of(run.job).under(run.trace, cadence.step_s)
    named = candidate_policies(run.policies, workload, conditions)
    with threadpool_limits(limits=1):
        outcome = ReplayRun(workload, named, run.seeds, conditions).run(progress)
    windows = len(outcome.ledger.slots)
    rows: list[Row] = []
    for place, (policy, seed) in enumerate(zip(outcome.names, outcome.seeds, strict=True)):
        for segment in SEGMENTS:
            found = score(
                outcome.ledger,
                place,
                span_of(segment, windows, cadence.window_s),
                window_s=cadence.window_s,
                slots_max=workload.spec.slots_max,
                prices=conditions.prices,
            )
            rows.append(
                {
                    "trace": run.trace.name,
                    "job": workload.spec.name,
                    "policy": policy,
                    "seed": seed,
                    "segment": segment,
                    "rescales_per_day": found.rescales_per_day,
                    "late_minutes_per_day": found.late_minutes_per_day,
                    "lag_record_seconds": found.lag_record_seconds,
                    "slot_hours": found.slot_hours,
                    "cost": found.cost,
                }
            )
    first = {name: outcome.names.index(name) for name in run.policies}
    slots = {name: outcome.ledger.slots[:, place] for name, place in first.items()}
    refused = {
        name: int(sum(count for other, count in zip(outcome.names, outcome.refused, strict=True) if other == name))
        for name in run.policies
    }
    return Found(rows, slots, outcome.arrivals_per_s, refused)


def merged(parts: Sequence[Found], policies: Sequence[str]) -> Found:
    """Put the parts of a run together, in the order of the policies, each row compared with the clairvoyant's."""
    rows = [row for part in parts for row in part.rows]
    floor = {(row["seed"], row["segment"]): row["cost"] for row in rows if row["policy"] == FLOOR}
    order = {name: place for place, name in enumerate(policies)}
    rows.sort(key=lambda row: order[str(row["policy"])])  # stable: seeds and segments keep their order
    compared: list[Row] = []
    for row in rows:
        least, cost = floor.get((row["seed"], row["segment"])), row["cost"]
        ratio = float(cost) / float(least) if least and cost is not None else None
        compared.append({**row, "cost_vs_clairvoyant": ratio})
    slots = {name: part.slots[name] for name in policies for part in parts if name in part.slots}
    refused = {name: part.refused[name] for name in policies for part in parts if name in part.refused}
    return Found(compared, slots, parts[0].arrivals_per_s, refused)


def windows_of(trace: Trace, conditions: Conditions) -> int:
    """Return the windows of a run, for a progress bar."""
    return len(trace.values) * BIN_S // conditions.cadence.window_s


def run_all(run: Run, processes: int, progress: Callable[[int], None] | None = None) -> Found:
    """Run all candidate policies, in several processes if there are several candidate policies.

    Args:
        run: with all policies.
        processes: at most so many.
        progress: told how many windows are done, over all processes: each counts them all.
    """
    dealt = shares(run.policies, processes)
    parts = [Run(run.trace, run.job, names, run.seeds, run.conditions) for names in dealt]
    if len(parts) == 1:
        return merged([simulate(parts[0], progress)], run.policies)
    context = multiprocessing.get_context("spawn")
    manager = SyncManager(ctx=context)
    manager.start(end_with_parent)
    with manager:
        done: Queue[tuple[int, int]] = manager.Queue()
        with ProcessPoolExecutor(len(parts), mp_context=context, initializer=end_with_parent) as pool, stop_workers():
            waiting = [pool.submit(_in_process, part, place, done) for place, part in enumerate(parts)]
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
            return merged([future.result() for future in waiting], run.policies)


def _in_process(run: Run, place: int, done: Any) -> Found:
    return simulate(run, lambda windows: done.put((place, windows)))
