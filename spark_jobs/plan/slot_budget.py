"""A cluster's budget of slots: the prices under which its jobs' plans fit into it together.

The jobs' programmes are made once and kept; each round of prices is one pass over them, and only sums come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from include.policy_catalogue import entry_of, import_object
from models.arrays import Floats, Ints
from models.scheduling.shortest_path import drop_dominated, find_shortest_paths
from models.scheduling.slot_prices import Allocation, SlotDemand, SlotPrices, allocate, job_hash, weight_of
from models.scheduling.slot_problem import SlotProblem, list_bins, overlap_minutes
from spark_jobs.lake import keep
from spark_jobs.packed_objects import collect_objects, map_objects
from spark_jobs.plan.job_plan import PlanTask, recall_memory, situation_of
from spark_jobs.plan.new_jobs import begin_states
from spark_jobs.plan_inputs.job_state import JobState

JOBS_TOGETHER = 500  # a job's tables take some 50 kB; those of so many are in memory at once


@dataclass(frozen=True, slots=True)
class JobProgramme:
    """The programme of one job over T steps with K candidates; a single one keeps what the job has.

    Attributes:
        number: see :class:`models.scheduling.slot_prices.SlotPrices`.
        weight: see :func:`models.scheduling.slot_prices.weight_of`.
        slot_price: a slot's own, per minute.
        edges_s: (T + 1,) of the steps, seconds after the plan.
        minutes: (T,) of the steps.
        slots: (K,) of the candidates.
        bin_cost: (T, K) of a step, without slots.
        switch: (T, K) cost of a change.
    """

    number: float
    weight: float
    slot_price: float
    edges_s: Floats
    minutes: Floats
    slots: Ints
    bin_cost: npt.NDArray[np.float32]
    switch: npt.NDArray[np.float32]

    @classmethod
    def of(cls, problem: SlotProblem, number: float, weight: float) -> JobProgramme:
        """Read a policy's problem."""
        costs = problem.costs
        # Each round of prices solves them all.
        retained = drop_dominated(costs.cost_per_bin(), costs.switch, costs.slots)
        tables = (one[:, retained].astype(np.float32) for one in (costs.bin_cost, costs.switch))
        return cls(number, weight, costs.slot_price, problem.edges_s, costs.minutes, costs.slots[retained], *tables)


@dataclass(frozen=True, slots=True)
class FleetProgrammes:
    """Programmes of many jobs as arrays: J jobs, T steps, K candidates, padded; G bins of the budget.

    Attributes:
        slot_price: a slot's own, per minute; the highest of the jobs'.
        number, weight: (J,) of the jobs.
        own: (J, T, K) cost of a step, slots at their own price included; infinite where there is no candidate.
        switch: (J, T, K) cost of a change.
        slots: (J, K) of the candidates.
        overlaps: (T, G) minutes of each step in each bin, of every sequence of steps that some job has.
        which: (J,) its sequence.
    """

    slot_price: float
    number: Floats
    weight: Floats
    own: Floats
    switch: Floats
    slots: Floats
    overlaps: tuple[Floats, ...]
    which: Ints

    @classmethod
    def of(cls, jobs: list[JobProgramme], bins_s: Floats) -> FleetProgrammes:
        """Bring programmes together, with the edges of the budget's bins."""
        bins, widest = max(len(one.minutes) for one in jobs), max(len(one.slots) for one in jobs)
        shape = (len(jobs), bins, widest)
        own, switch = np.full(shape, np.inf), np.zeros(shape)
        held, minutes = np.zeros((len(jobs), widest)), np.zeros((len(jobs), bins))
        for place, one in enumerate(jobs):
            length, count = one.bin_cost.shape
            held[place, :count] = one.slots
            minutes[place, :length] = one.minutes
            own[place, :length, :count] = one.bin_cost
            own[place, length:, :count] = 0.0
            switch[place, :length, :count] = one.switch
        price, number, weight = np.array([(one.slot_price, one.number, one.weight) for one in jobs]).T
        own += (price[:, None] * minutes)[:, :, None] * held[:, None, :]
        sequences = {one.edges_s.tobytes(): one.edges_s for one in jobs}
        places = {name: place for place, name in enumerate(sequences)}
        overlaps = tuple(
            np.pad(one, ((0, bins - len(one)), (0, 0)))
            for one in (overlap_minutes(edges_s, bins_s) for edges_s in sequences.values())
        )
        which = np.array([places[one.edges_s.tobytes()] for one in jobs])
        return cls(float(price.max()), number, weight, own, switch, held, overlaps, which)

    def ask(self, offer: SlotPrices) -> SlotDemand:
        """Return what these jobs ask for."""
        prices = self.weight[:, None] * offer.of(self.number)  # (J, G), or (J, 1) where all bins have one price
        bins = self.overlaps[0].shape[1]
        prices = np.broadcast_to(prices, (len(prices), bins)) if prices.shape[1] == 1 else prices[:, :bins]
        paid = np.zeros(self.own.shape[:2])
        for place, overlap in enumerate(self.overlaps):
            paid[self.which == place] = prices[self.which == place] @ overlap.T
        path = find_shortest_paths(
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


def make_fleets(task: PlanTask, cluster: str, known: Iterable[JobState]) -> Iterator[FleetProgrammes]:
    """Yield the programmes of a cluster's jobs that take slots of its budget: one that has ended takes none.

    A job that is not planned for, or by a policy without regard to budgets, keeps what it has: a single candidate.
    """
    bins_s = list_bins(task.as_of_s, task.settings.planner)
    states = begin_states(task.settings, (one for one in known if one.cluster == cluster and one.ended_at_s is None))
    while jobs := [_make_programme(task, state) for state in islice(states, JOBS_TOGETHER)]:
        yield FleetProgrammes.of(jobs, bins_s)


def list_budgets(task: PlanTask) -> dict[str, int]:
    """Return cluster -> slots that its jobs may have together, of clusters with a budget."""
    return {name: one.slots_total for name, one in task.settings.clusters.items() if one.slots_total is not None}


def allocate_slots(states: DataFrame, task: PlanTask) -> Mapping[str, Allocation]:
    """Return cluster -> its prices; empty, and nothing is computed, without any budget."""
    return {name: _allocate(states, task, name, total) for name, total in list_budgets(task).items()}


def _allocate(states: DataFrame, task: PlanTask, cluster: str, total: int) -> Allocation:
    fleets = keep(map_objects(states, lambda known: make_fleets(task, cluster, known)))
    prices = collect_objects(map_objects(fleets, lambda made: (one.slot_price for one in made)))
    if not prices:
        return Allocation(SlotPrices.free(), SlotDemand(np.zeros(1), 0.0), fits=True, rounds=0)

    def ask(offer: SlotPrices) -> SlotDemand:
        answers = collect_objects(map_objects(fleets, lambda made: (one.ask(offer) for one in made)))
        return SlotDemand(np.sum([one.slots for one in answers], axis=0), sum(one.cost for one in answers))

    bins = len(list_bins(task.as_of_s, task.settings.planner)) - 1
    return allocate(ask, np.full(bins, float(total)), max(prices))


def _make_programme(task: PlanTask, state: JobState) -> JobProgramme:
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
        return JobProgramme.of(problem, job_hash(situation.seed), weight)
    except Exception:  # the plan itself names what is wrong with the job
        return _fix_job(task, state)


def _fix_job(task: PlanTask, state: JobState) -> JobProgramme:
    """Return a job that keeps what it has over the whole horizon."""
    edges_s = list_bins(task.as_of_s, task.settings.planner)[[0, -1]]
    nothing = np.zeros((1, 1), np.float32)
    return JobProgramme(0.0, 1.0, 0.0, edges_s, np.diff(edges_s) / 60.0, np.array([state.slots]), nothing, nothing)
