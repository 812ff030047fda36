"""A cluster's budget of slots: the prices under which its jobs' plans fit into it together.

The jobs' programmes are made once and kept; each round of prices is one pass over them, and only sums come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.policy_catalogue import entry_of, import_object
from models.arrays import Floats, Ints
from models.scheduling.shortest_path import drop_dominated, solve
from models.scheduling.slot_prices import Allocation, SlotDemand, SlotPrices, allocate, job_hash, weight_of
from models.scheduling.slot_problem import SlotProblem, list_bins, overlap_minutes
from spark_jobs.plan.job_plan import PlanTask, recall_memory, situation_of
from spark_jobs.plan.new_jobs import read_states
from spark_jobs.plan_inputs.job_state import JobState
from spark_jobs.plan_inputs.struct_arrays import map_rows, rows_in

SCHEMA = """cluster STRING, job STRING, number DOUBLE, weight DOUBLE, slot_price DOUBLE, bins INT, edges BINARY,
            slots BINARY, minutes BINARY, stage BINARY, switch BINARY"""
ANSWER = "slots ARRAY<DOUBLE>, cost DOUBLE"
JOBS_PER_PARTITION = 500  # a job's tables take some 50 kB; a partition's are in memory at once


@dataclass(frozen=True, slots=True)
class Fleet:
    """Programmes of many jobs as arrays: J jobs, T steps, K candidates, padded; G bins of the budget.

    Attributes:
        number: (J,) see :class:`models.scheduling.slot_prices.SlotPrices`.
        weight: (J,) see :func:`models.scheduling.slot_prices.weight_of`.
        own: (J, T, K) cost of a step, slots at their own price included; infinite where there is no candidate.
        switch: (J, T, K) cost of a change.
        slots: (J, K) of the candidates.
        overlaps: (T, G) minutes of each step in each bin, of every sequence of steps that some job has.
        which: (J,) its sequence.
    """

    number: Floats
    weight: Floats
    own: Floats
    switch: Floats
    slots: Floats
    overlaps: tuple[Floats, ...]
    which: Ints

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], bins_s: Floats) -> Fleet:
        """Read rows of :data:`SCHEMA`, with the edges of the budget's bins."""
        slots = [np.frombuffer(row["slots"], np.int64) for row in rows]
        bins, widest = max(row["bins"] for row in rows), max(map(len, slots))
        shape = (len(rows), bins, widest)
        own, switch = np.full(shape, np.inf), np.zeros(shape)
        held, minutes = np.zeros((len(rows), widest)), np.zeros((len(rows), bins))
        for place, row in enumerate(rows):
            count, length = len(slots[place]), row["bins"]
            held[place, :count] = slots[place]
            minutes[place, :length] = np.frombuffer(row["minutes"], np.float64)
            own[place, :length, :count] = np.frombuffer(row["stage"], np.float32).reshape(length, count)
            own[place, length:, :count] = 0.0
            switch[place, :length, :count] = np.frombuffer(row["switch"], np.float32).reshape(length, count)
        price, number, weight = (
            np.array([row[name] for row in rows], float) for name in ("slot_price", "number", "weight")
        )
        own += (price[:, None] * minutes)[:, :, None] * held[:, None, :]
        sequences, which = np.unique([row["edges"].hex() for row in rows], return_inverse=True)
        overlaps = tuple(
            np.pad(one, ((0, bins - len(one)), (0, 0)))
            for one in (overlap_minutes(np.frombuffer(bytes.fromhex(text), np.float64), bins_s) for text in sequences)
        )
        return cls(number, weight, own, switch, held, overlaps, which)

    def ask(self, offer: SlotPrices) -> SlotDemand:
        """Return what these jobs ask for."""
        prices = self.weight[:, None] * offer.of(self.number)  # (J, G), or (J, 1) where all bins have one price
        bins = self.overlaps[0].shape[1]
        prices = np.broadcast_to(prices, (len(prices), bins)) if prices.shape[1] == 1 else prices[:, :bins]
        paid = np.zeros(self.own.shape[:2])
        for place, overlap in enumerate(self.overlaps):
            paid[self.which == place] = prices[self.which == place] @ overlap.T
        path = solve(
            self.own + paid[:, :, None] * self.slots[:, None, :], self.switch, np.zeros(len(self.number), np.int64)
        ).choice
        taken = np.take_along_axis(self.slots, path, axis=1)
        cost = np.take_along_axis(self.own, path[:, :, None], axis=2)[:, :, 0]
        before = np.concatenate([np.zeros((len(path), 1), np.int64), path[:, :-1]], axis=1)
        changes = np.take_along_axis(self.switch, path[:, :, None], axis=2)[:, :, 0]
        slots = sum(_sum_most(taken[self.which == place], overlap) for place, overlap in enumerate(self.overlaps))
        return SlotDemand(np.asarray(slots), float(cost.sum() + changes[path != before].sum()))


def _sum_most(taken: Floats, overlap: Floats) -> Floats:
    """Return (G,) the slots of jobs together, of each the most that it takes in a bin; beyond its steps, its last."""
    is_within = overlap > 0
    last = int(np.flatnonzero(is_within.any(axis=1)).max(initial=0))
    result = []
    for within in is_within.T:
        steps = np.flatnonzero(within)
        result.append(taken[:, steps].max(axis=1).sum() if len(steps) else taken[:, last].sum())
    return np.array(result)


def build_problems(states: DataFrame, task: PlanTask) -> DataFrame:
    """Return one row of :data:`SCHEMA` per job of a cluster with a budget.

    A job that is not planned for, or by a policy without regard to budgets, keeps what it has: a single candidate.
    """
    ours = states.where(F.col("cluster").isin(list(budgets(task))))
    return ours.mapInArrow(map_rows(partial(list_problems, task), SCHEMA), SCHEMA).localCheckpoint()


def list_problems(task: PlanTask, known: Iterable[dict[str, Any]]) -> Iterator[dict[str, object]]:
    """Yield a row of :data:`SCHEMA` for each job that takes slots of a budget: one that has ended takes none."""
    return (_row(task, state) for state in read_states(task.settings, known) if state.ended_at_s is None)


def budgets(task: PlanTask) -> dict[str, int]:
    """Return cluster -> slots that its jobs may have together, of clusters with a budget."""
    return {name: one.slots_total for name, one in task.settings.clusters.items() if one.slots_total is not None}


def allocations(states: DataFrame, task: PlanTask) -> Mapping[str, Allocation]:
    """Return cluster -> its prices; empty, and nothing is computed, without any budget."""
    if not budgets(task):
        return {}
    made = build_problems(states, task)
    bins_s = list_bins(task.as_of_s, task.settings.planner)
    return {
        name: _allocate(made.where(F.col("cluster") == name), total, bins_s) for name, total in budgets(task).items()
    }


def _allocate(rows: DataFrame, total: int, bins_s: Floats) -> Allocation:
    size = rows.agg(F.count("*").alias("jobs"), F.max("slot_price").alias("unit")).first()
    if size is None or not size["jobs"]:
        return Allocation(SlotPrices.free(), SlotDemand(np.zeros(1), 0.0), fits=True, rounds=0)
    bins = len(bins_s) - 1
    parts = rows.repartition(-(-size["jobs"] // JOBS_PER_PARTITION)).localCheckpoint()

    def ask(offer: SlotPrices) -> SlotDemand:
        answers = parts.mapInArrow(_answerer(offer, bins_s), ANSWER).collect()  # one row per partition
        slots = np.sum([answer["slots"] for answer in answers], axis=0)
        return SlotDemand(slots, sum(answer["cost"] for answer in answers))

    return allocate(ask, np.full(bins, float(total)), float(size["unit"]))


def _answerer(offer: SlotPrices, bins_s: Floats) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def answer(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                asked = Fleet.of(list(rows_in(batch)), bins_s).ask(offer)
                yield pa.RecordBatch.from_pydict({"slots": [asked.slots.tolist()], "cost": [asked.cost]})

    return answer


def _row(task: PlanTask, state: JobState) -> dict[str, object]:
    try:
        situation = situation_of(task, state)
        name = task.settings.planner.policy_of(state.cluster, state.job)
        path = entry_of(name).slot_problem
        if path is None:
            return _fix_job(task, state)
        problem = import_object(path)(situation, recall_memory(task, name, state)[1])
        if problem is None:
            return _fix_job(task, state)
        weight = weight_of(task.settings.job_limits(state.cluster, state.job).priority)
        key = {"cluster": state.cluster, "job": state.job}
        return key | state_row(problem, job_hash(situation.seed), weight)
    except Exception:  # the plan itself names what is wrong with the job
        return _fix_job(task, state)


def state_row(problem: SlotProblem, number: float, weight: float) -> dict[str, object]:
    """Return the columns of :data:`SCHEMA` but the job's names."""
    costs = problem.costs
    # Each round of prices reads and solves them all.
    retained = drop_dominated(costs.cost_per_bin(), costs.switch, costs.slots)
    return {
        "number": number,
        "weight": weight,
        "slot_price": costs.slot_price,
        "bins": len(costs.minutes),
        "edges": problem.edges_s.astype(np.float64).tobytes(),
        "slots": costs.slots[retained].astype(np.int64).tobytes(),
        "minutes": costs.minutes.astype(np.float64).tobytes(),
        "stage": costs.bin_cost[:, retained].astype(np.float32).tobytes(),
        "switch": costs.switch[:, retained].astype(np.float32).tobytes(),
    }


def _fix_job(task: PlanTask, state: JobState) -> dict[str, object]:
    """Return a job that keeps what it has: a single candidate over the whole horizon."""
    edges_s = list_bins(task.as_of_s, task.settings.planner)[[0, -1]]
    nothing = np.zeros(1, np.float32).tobytes()
    return {
        "cluster": state.cluster,
        "job": state.job,
        "number": 0.0,
        "weight": 1.0,
        "slot_price": 0.0,
        "bins": 1,
        "edges": edges_s.tobytes(),
        "slots": np.array([state.slots], np.int64).tobytes(),
        "minutes": (np.diff(edges_s) / 60.0).tobytes(),
        "stage": nothing,
        "switch": nothing,
    }
