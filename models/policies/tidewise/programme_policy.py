"""The programme as a policy: the plan leaves the load that it expects, every evaluation decides anew."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from models.arrays import Ints
from models.policies.immediate_change import hold
from models.policies.job_snapshot import Snapshot
from models.policies.protocol import Schedule, Situation
from models.policies.tidewise.full_operators import describe_stuck, find_stuck
from models.policies.tidewise.job_sizes import JobSizes, list_sizes
from models.policies.tidewise.measurements import edge_windows, lag_s, latest_windows
from models.policies.tidewise.programme_memory import PlannedLoad, ProgrammeMemory
from models.policies.tidewise.reactive_controller import learn_windows
from models.policies.tidewise.step_loads import list_step_loads
from models.policies.tidewise.tidewise_memory import ControllerMemory, ReactiveDecision
from models.policies.tidewise.unseen import Unseen, describe_load_unseen, describe_unseen, find_unseen, leave_out
from models.policies.tuning.reading import Reading, read_windows
from models.programme.horizon import least_of_steps, spread_levels
from models.programme.law_state import LawState
from models.programme.load_law import observe
from models.programme.load_outlook import LoadOutlook, look_ahead
from models.programme.load_paths import STEP_S
from models.programme.programme import Sizes, Terms, solve

LEAST_STEPS: Final = 2
MARGIN: Final = 0.15
"""By which a change has to be better than its price: the saving is an estimate, and the largest of many."""
_STEPS_OF_A_DAY: Final = 86400 // STEP_S
_CAPACITY_NOISE: Final = 0.02  # of one step
_NO_AGE: Final = 0.2  # of what is late: below it is what records take anyhow
_REMAINING: Final = 0.6  # of a restart's downtime, when it is noticed


class Programme:
    """Decides at every evaluation by a small Markov decision process over size, load and age of the backlog."""

    def first_memory(self) -> ProgrammeMemory:
        """Return the memory of a job that was never evaluated."""
        return ProgrammeMemory()

    def decide(self, situation: Situation, memory: ProgrammeMemory) -> tuple[Schedule, ProgrammeMemory]:
        """Return no step, and the memory with the load that is expected: the evaluations decide."""
        known = replace(memory, planned=PlannedLoad.of(situation.forecast))
        return hold(situation, "decided at every evaluation, by the load and the backlog then"), known

    def evaluate(
        self, job: Snapshot, memory: ProgrammeMemory, left: ProgrammeMemory | None = None
    ) -> tuple[ReactiveDecision, ProgrammeMemory]:
        """Return what a job should run at from now on.

        Args:
            job: as it is now.
            memory: of the last evaluation.
            left: what a newer plan left; None to keep what is remembered of one.
        """
        if left is not None:
            memory = replace(memory, planned=left.planned)
        law = LawState.read(memory.law)
        for one in list_step_loads(job.graph, job.observations, law.newest):
            observe(law, one.at, one.load_per_s, memory.planned.total, is_least=one.is_least)
        known = learn_windows(memory.controller, job.graph, job.observations)
        reading, unseen, known = _read(job, known)
        memory = replace(memory, law=law.write(), controller=known)
        if not (job.up or job.restarting):
            return ReactiveDecision(None, "the job is not running"), memory
        if unseen.sources:
            why = describe_load_unseen(unseen)
            return ReactiveDecision(None, why, remark=why), memory
        if law.seen < LEAST_STEPS:
            return ReactiveDecision(None, "too little was seen of its load yet"), memory
        return self._choose(job, memory, law, reading, unseen), memory

    @staticmethod
    def _choose(
        job: Snapshot, memory: ProgrammeMemory, law: LawState, reading: Reading | None, unseen: Unseen
    ) -> ReactiveDecision:
        known = memory.controller
        outlook = look_ahead(law, memory.planned.total)
        highest = float(outlook.quantile_per_s(2.0, 24).max())
        sizes = list_sizes(job, known, memory.planned, at=law.newest, load_per_s=highest, left_out=unseen.busy_sources)
        if sizes is None:
            return ReactiveDecision(None, "nothing tells yet what its sizes can process")
        sizes = sizes.take(_select(sizes, outlook))
        stuck = find_stuck(job, reading, known)
        age_s, terms = _measure_age(job, is_stuck=bool(stuck)), _terms(job)
        capacity = np.exp(np.log(sizes.capacity_per_s).mean(axis=1))
        relative = outlook.noise * (capacity + outlook.offset) / capacity
        spread = np.sqrt(relative**2 + _CAPACITY_NOISE**2 + sizes.doubt**2)
        rows = Sizes(sizes.slots.astype(float), least_of_steps(np.log(sizes.capacity_per_s)), spread)
        values = solve(rows, spread_levels(outlook), outlook.shape, age_s, terms)
        best = int(values.go.argmin())
        why = describe_unseen(unseen)
        if reading is not None:
            why = describe_stuck(job, reading, known, stuck) + why
        if best == 0 or values.go[best] >= values.stay:
            return ReactiveDecision(None, "staying costs least" + why, remark=why.removeprefix("; "))
        wanted = dict(zip(job.graph.names, sizes.configurations[best].tolist(), strict=True))
        return ReactiveDecision(wanted, f"{sizes.slots[0]} -> {sizes.slots[best]} slots" + why)


def _read(job: Snapshot, known: ControllerMemory) -> tuple[Reading | None, Unseen, ControllerMemory]:
    """Return what the latest windows tell, what they do not, and the memory with the shares that they show."""
    windows, of_edges = latest_windows(job), edge_windows(job)
    reading = read_windows(job.graph, windows, job.running, of_edges=of_edges)
    if reading is None:
        return None, Unseen(), known
    unseen = find_unseen(job, reading, windows, of_edges)
    load = sum(reading.required_per_s[name] for name in job.graph.sources)
    if load > 0:
        shares = {name: need / load for name, need in reading.required_per_s.items() if math.isfinite(need)}
        known = replace(known, shares=shares)
    return leave_out(reading, unseen), unseen, known


def _measure_age(job: Snapshot, *, is_stuck: bool) -> float:
    """Return the age of the oldest record, s; of one that no size can help there is none to work off."""
    age = lag_s(job.observations)
    if job.restarting:
        return max(age, job.recovery.downtime_restart_s / 2)
    return 0.0 if is_stuck or age < _NO_AGE * job.options.costs.late_after_s else age


def _terms(job: Snapshot) -> Terms:
    costs, recovery = job.options.costs, job.recovery
    return Terms(
        slot_price=costs.resource_weight / job.slots_max,
        late_price=costs.late_weight,
        rescale_price=costs.rescale_weight * (1 + MARGIN),
        late_after_s=costs.late_after_s,
        rescale_s=recovery.downtime_rescale_s,
        restart_s=recovery.downtime_restart_s,
        lost_s=recovery.checkpoint_interval_s,
        failures_per_step=min(costs.failures_per_day / _STEPS_OF_A_DAY, 1.0),
        down_s=_REMAINING * recovery.downtime_restart_s if job.restarting else 0.0,
    )


_FAR: Final = 4.0  # standard deviations of the load beyond which sizes do not matter
_WIDER: Final = (1.15, 1.35, 1.65, 2.0, 9.0)  # times the slots that the load may need, to work a backlog off
_NARROW: Final = 0.7
_MOST: Final = 26


def _select(sizes: JobSizes, outlook: LoadOutlook) -> Ints:
    """Return the rows of the sizes that can matter, the running one first."""
    far = outlook.sd * _FAR
    transient = 3.0 * outlook.noise
    high = float(np.exp((outlook.mean + far).max() + transient)) - outlook.offset
    low = max(float(np.exp((outlook.mean - far).min() - transient)) - outlook.offset, 0.0)
    least, most = sizes.capacity_per_s.min(axis=1), sizes.capacity_per_s.max(axis=1)
    order = np.argsort(sizes.slots[1:], kind="stable") + 1
    if not len(order):
        return np.zeros(1, np.int64)
    enough = np.flatnonzero(least[order] >= high)
    last = int(enough[0]) if len(enough) else len(order) - 1
    first = max(int((most[order] < _NARROW * low).sum()) - 1, 0)
    chosen = set(range(min(first, last), last + 1))
    if len(chosen) > _MOST - len(_WIDER):
        chosen = set(np.linspace(min(first, last), last, _MOST - len(_WIDER)).round().astype(int).tolist())
    slots = sizes.slots[order]
    for share in _WIDER:
        chosen.add(min(int(np.searchsorted(slots, share * slots[last])), len(order) - 1))
    return np.array([0, *order[sorted(chosen)].tolist()], np.int64)
