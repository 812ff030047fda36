"""A cluster's budget of slots: the prices under which its jobs' plans fit into it together.

The jobs' programmes are made once and kept; each round of prices is one pass over them, and only sums come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.policy_catalogue import entry_of, import_object
from models.arrays import Floats
from models.scheduling.cost_model import CostTables
from models.scheduling.shortest_path import drop_dominated, solve
from models.scheduling.slot_prices import Allocation, SlotDemand, SlotPrices, allocate, job_hash
from spark_jobs.job_inputs.job_state import JobState
from spark_jobs.job_inputs.newest_rows import JOB
from spark_jobs.job_inputs.struct_arrays import map_rows, rows_in
from spark_jobs.plan.job_plan import PlanTask, situation_of

SCHEMA = """cluster STRING, job STRING, number DOUBLE, slot_price DOUBLE, bins INT, slots BINARY, minutes BINARY,
            stage BINARY, switch BINARY"""
ANSWER = "slots ARRAY<DOUBLE>, cost DOUBLE"
JOBS_PER_PARTITION = 500  # a job's tables take some 50 kB; a partition's are in memory at once


@dataclass(frozen=True, slots=True)
class Fleet:
    """Programmes of many jobs as arrays: J jobs, T bins, K candidates, padded.

    Attributes:
        number: (J,) see :class:`models.scheduling.slot_prices.SlotPrices`.
        own: (J, T, K) cost of a bin, slots at their own price included; infinite where there is no candidate.
        switch: (J, T, K) cost of a change.
        slots: (J, K) of the candidates.
        minutes: (J, T) of the bins.
    """

    number: Floats
    own: Floats
    switch: Floats
    slots: Floats
    minutes: Floats

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Fleet:
        """Read rows of :data:`SCHEMA`."""
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
        price, number = (np.array([row[name] for row in rows], float) for name in ("slot_price", "number"))
        own += (price[:, None] * minutes)[:, :, None] * held[:, None, :]
        return cls(number, own, switch, held, minutes)

    def ask(self, offer: SlotPrices) -> SlotDemand:
        """Return what these jobs ask for."""
        prices = offer.of(self.number)[:, : self.minutes.shape[1]]
        path = solve(
            self.own + (prices * self.minutes)[:, :, None] * self.slots[:, None, :],
            self.switch,
            np.zeros(len(self.number), np.int64),
        ).choice
        taken = np.take_along_axis(self.slots, path, axis=1)
        cost = np.take_along_axis(self.own, path[:, :, None], axis=2)[:, :, 0]
        before = np.concatenate([np.zeros((len(path), 1), np.int64), path[:, :-1]], axis=1)
        paid = np.take_along_axis(self.switch, path[:, :, None], axis=2)[:, :, 0]
        return SlotDemand(taken.sum(axis=0), float(cost.sum() + paid[path != before].sum()))


def build_problems(states: DataFrame, task: PlanTask) -> DataFrame:
    """Return one row of :data:`SCHEMA` per job of a cluster with a budget.

    A job that is not planned for, or by a policy without regard to budgets, keeps what it has: a single candidate.
    """
    budgeted = F.col("cluster").isin(list(budgets(task)))
    spread = states.where(budgeted).repartition(task.settings.spark.shuffle_partitions, *JOB)
    return spread.mapInArrow(map_rows(lambda known: [_row(task, JobState.of(known))], SCHEMA), SCHEMA).localCheckpoint()


def budgets(task: PlanTask) -> dict[str, int]:
    """Return cluster -> slots that its jobs may have together, of clusters with a budget."""
    return {name: one.slots_total for name, one in task.settings.clusters.items() if one.slots_total is not None}


def allocations(states: DataFrame, task: PlanTask) -> Mapping[str, Allocation]:
    """Return cluster -> its prices; empty, and nothing is computed, without any budget."""
    if not budgets(task):
        return {}
    made = build_problems(states, task)
    return {name: _allocate(made.where(F.col("cluster") == name), total) for name, total in budgets(task).items()}


def _allocate(rows: DataFrame, total: int) -> Allocation:
    size = rows.agg(F.count("*").alias("jobs"), F.max("bins").alias("bins"), F.max("slot_price").alias("unit")).first()
    if size is None or not size["jobs"]:
        return Allocation(SlotPrices.free(), SlotDemand(np.zeros(1), 0.0), fits=True, rounds=0)
    spread = rows.repartition(-(-size["jobs"] // JOBS_PER_PARTITION)).localCheckpoint()

    def ask(offer: SlotPrices) -> SlotDemand:
        answers = spread.mapInArrow(_answerer(offer), ANSWER).collect()  # one row per partition
        slots = np.sum([_pad(answer["slots"], size["bins"]) for answer in answers], axis=0)
        return SlotDemand(slots, sum(answer["cost"] for answer in answers))

    return allocate(ask, np.full(size["bins"], float(total)), float(size["unit"]))


def _pad(values: list[float], bins: int) -> Floats:
    return np.pad(np.array(values, float), (0, bins - len(values)))


def _answerer(offer: SlotPrices) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def answer(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                asked = Fleet.of(list(rows_in(batch))).ask(offer)
                yield pa.RecordBatch.from_pydict({"slots": [asked.slots.tolist()], "cost": [asked.cost]})

    return answer


def _row(task: PlanTask, state: JobState) -> dict[str, object]:
    try:
        situation = situation_of(task, state)
        path = entry_of(task.settings.planner.policy_of(state.cluster, state.job)).slot_problem
        if path is None or situation.forecast.fallback is not None:
            return _fix_job(task, state)
        return _price_job(state, import_object(path)(situation).costs, job_hash(situation.seed))
    except Exception:  # the plan itself names what is wrong with the job
        return _fix_job(task, state)


def _price_job(state: JobState, costs: CostTables, number: float) -> dict[str, object]:
    retained = drop_dominated(
        costs.cost_per_bin(), costs.switch, costs.slots
    )  # each round of prices reads and solves them all
    return {
        "cluster": state.cluster,
        "job": state.job,
        "number": number,
        "slot_price": costs.slot_price,
        "bins": len(costs.minutes),
        "slots": costs.slots[retained].astype(np.int64).tobytes(),
        "minutes": costs.minutes.astype(np.float64).tobytes(),
        "stage": costs.bin_cost[:, retained].astype(np.float32).tobytes(),
        "switch": costs.switch[:, retained].astype(np.float32).tobytes(),
    }


def _fix_job(task: PlanTask, state: JobState) -> dict[str, object]:
    options = task.settings.planner
    bins = options.horizon_h * 3600 // options.bin_s
    slots = np.array([state.slots], np.int64)
    nothing = np.zeros(bins, np.float32).tobytes()
    return {
        "cluster": state.cluster,
        "job": state.job,
        "number": 0.0,
        "slot_price": 0.0,
        "bins": bins,
        "slots": slots.tobytes(),
        "minutes": np.full(bins, options.bin_s / 60.0).tobytes(),
        "stage": nothing,
        "switch": nothing,
    }
