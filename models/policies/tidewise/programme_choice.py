"""What the programme chooses for a job: its sizes, its load and its backlog as a problem, and the cheapest decision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from include.utc import HOUR_S
from models.arrays import Floats, Ints
from models.policies.job_snapshot import Snapshot
from models.policies.tidewise.backlog_changes import list_backlog_changes
from models.policies.tidewise.falling_behind import falls_behind
from models.policies.tidewise.job_sizes import CAUTION, JobSizes, list_sizes
from models.policies.tidewise.measurements import NO_AGE, lag_s, stays_behind
from models.policies.tidewise.planned_steps import StepMeasurement
from models.policies.tidewise.programme_memory import ProgrammeMemory
from models.policies.tidewise.size_selection import select_sizes
from models.policies.tidewise.taken_back import ScaleDownRecord
from models.programme.capacity_belief import CapacityBelief, measure_capacity_error
from models.programme.choice import ExpectedCosts, ProgrammeDecision, find_best, form_decision
from models.programme.event_path import raise_outlook
from models.programme.expected_path import expect_path
from models.programme.horizon import STEPS, least_of_steps, spread_levels
from models.programme.law_state import LawState
from models.programme.load_outlook import LoadOutlook, look_ahead
from models.programme.load_paths import AHEAD, LEAST_PER_S, STEP_S
from models.programme.problem import CostsToGo, CostTerms, RecoveryGoal, Sizes
from models.programme.programme import Solution, solve_programme
from models.programme.waits import count_waiting_steps
from models.scheduling.need import upper_limits
from models.scheduling.rescale_timing import expect_checkpoint_s
from models.scheduling.slot_bounds import price_outside

HARDLY_MORE: Final = 1.1
MARGIN: Final = 0.15
"""By which a change has to be better than its price: the saving is an estimate, and the largest of many.

Not where a backlog grows: that is measured."""
_STEPS_OF_A_DAY: Final = 86400 // STEP_S
_CAPACITY_NOISE: Final = 0.02  # of one step
_REMAINING: Final = 0.6  # of a restart's downtime, when it is noticed
_HIGH_SCORE: Final = 2.0
_REACH: Final = 24  # steps whose load an evaluation lists sizes for: two hours
_COMPARED: Final = 14  # steps of the programme, nearly two hours, in which a decision is compared with staying
_WORKED_OFF_S: Final = 4.0 * STEP_S  # in so long at most what waits is worked off, where people ask for nothing else
_REMEMBERED: Final = 72  # steps whose high load is carried while falls pause: six hours
_LATE_AT_LEAST: Final = 2.0  # a late job counts as so many times too late at least


@dataclass(frozen=True, slots=True)
class JobDecision:
    """A decision for a job.

    Attributes:
        sizes: that were compared, the running one first.
        choice: among them.
        belief: of the error of the models' capacity.
        measured: figures that a planned step is held against.
        taken_back: what became of the job's falls until now.
    """

    sizes: JobSizes
    choice: ProgrammeDecision
    belief: CapacityBelief
    measured: StepMeasurement
    taken_back: ScaleDownRecord

    def form_parallelism(self, names: Sequence[str]) -> dict[str, int]:
        """Return operator -> parallelism of the size that was chosen."""
        return dict(zip(names, self.sizes.configurations[self.choice.place].tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class JobProblem:
    """What the programme decides on.

    Attributes:
        sizes: that are compared, the running one first.
        rows: the same by the programme's steps.
        age_s: of the backlog.
        belief: of the error of the models' capacity.
    """

    sizes: JobSizes
    rows: Sizes
    age_s: float
    belief: CapacityBelief

    @property
    def carried_per_s(self) -> float:
        """Return the load that the running size sustains now, records/s."""
        return float(np.exp(self.rows.log_capacity[0, 0]))

    def find_carrying(self, log_load: float) -> int:
        """Return the place of the least size that carries a load now, of the running one where that is hardly more."""
        carries, slots = self.rows.log_capacity[:, 0] >= log_load, self.rows.slots
        least = int(np.where(carries, slots, np.inf).argmin()) if carries.any() else int(slots.argmax())
        return 0 if carries[0] and slots[0] <= HARDLY_MORE * slots[least] else least


def choose_job_size(
    job: Snapshot, memory: ProgrammeMemory, law: LawState, *, left_out: tuple[str, ...] = (), is_stuck: bool = False
) -> JobDecision | None:
    """Return the cheapest decision; None while nothing tells what the sizes of the job can process.

    While its backlog does not fall, no operator gets less than it has.  Where more and more waits, it goes to a size
    that carries the load and works the backlog off: what the law makes of a burst is no reason to stay behind.  After
    falls that were a loss it gets no less than what carries the high load of the last hours, their 90% quantile.
    Operators that are left out limit nothing; where one is stuck, short and not to grow, no size works a backlog off.
    """
    events = memory.planned.read_events(law.newest, 1 + AHEAD)
    outlook = raise_outlook(look_ahead(law, memory.planned.total), events, law.newest)
    keeps, is_paused = stays_behind(job), job.now_s < memory.taken_back.until_s
    at_least = job.running if keeps else None
    problem = state_problem(job, memory, law, outlook, STEPS, left_out=left_out, is_stuck=is_stuck, at_least=at_least)
    if problem is None:
        return None
    age_s, terms = problem.age_s, list_terms(job, problem.carried_per_s)
    rows = replace(problem.rows, paid=memory.charges.per_slot((law.newest + 1) * STEP_S, STEPS))
    levels = spread_levels(outlook)
    solved = solve_programme(rows, levels, outlook.shape, age_s, terms)
    values = solved.values

    place = _find_sufficient(job, rows, values) if falls_behind(job) and not is_stuck else None
    place = find_best(values) if place is None else place
    if is_paused:
        carrying = problem.find_carrying(float(np.quantile(law.loads[-_REMEMBERED:], 0.9)))
        place = carrying if rows.slots[carrying] > rows.slots[place] else place
    lasts_s, now_s = sum(STEPS[:_COMPARED]) * STEP_S, job.now_s
    after, staying = _expect(solved, place), _expect(solved, 0, stays=True)
    choice = form_decision(
        rows, values, outlook, terms, expected=(after, staying), lasts_s=lasts_s, age_s=age_s, now_s=now_s, place=place
    )
    measured = StepMeasurement.of(outlook, age_s, rows, values, keeps_slots=keeps or is_paused)
    return JobDecision(
        problem.sizes, choice, problem.belief, measured, memory.taken_back.follow(choice, terms, job.now_s)
    )


def _expect(solved: Solution, place: int, *, stays: bool = False) -> ExpectedCosts:
    """Return what is expected of a decision with what the programme would decide later, or of a size that stays."""
    terms, paid = solved.problem.terms, solved.problem.paid_slots
    waits = count_waiting_steps(terms.find_wait_s(*solved.problem.sizes.slots[[0, place]].tolist()), STEPS, 0)[0]

    def decide(step: int, runs: int, age_s: float) -> int:
        return solved.decide(step, runs, age_s) if step > waits and not stays else place if step >= waits else 0

    late_minutes, path = expect_path(solved.problem, solved.age_s, _COMPARED, decide)
    requested = [place if step < waits and paid[place] > paid[0] else size for step, size in enumerate(path)]
    return ExpectedCosts(float(late_minutes.sum()), float(paid[requested] @ STEPS[:_COMPARED]) * STEP_S / HOUR_S)


def _find_sufficient(job: Snapshot, rows: Sizes, values: CostsToGo) -> int | None:
    """Return the cheapest size that carries what arrives and works off in time what waits; None where nothing tells.

    Where none does, it is the one that processes most.
    """
    windows, sources = job.observations, [job.graph.position(name) for name in job.graph.sources]
    arrives_per_s, waiting = windows.target_data_rate_per_s[-1, sources].sum(), windows.waiting_records[-1, sources]
    within_s = job.options.costs.recovery_within_s or _WORKED_OFF_S
    needed_per_s = max(float(arrives_per_s + np.nansum(waiting) / within_s), LEAST_PER_S)  # NaN where that is not known
    is_enough = rows.log_capacity[:, 0] >= min(math.log(needed_per_s), float(rows.log_capacity[:, 0].max()))
    costs = np.where(is_enough, [values.stay, *values.go[1:]], np.inf)
    return int(costs.argmin()) if is_enough.any() else None


def state_problem(
    job: Snapshot,
    memory: ProgrammeMemory,
    law: LawState,
    outlook: LoadOutlook,
    steps: tuple[int, ...],
    *,
    left_out: tuple[str, ...] = (),
    is_stuck: bool = False,
    at_least: Mapping[str, int] | None = None,
) -> JobProblem | None:
    """Return what is decided on; None while nothing tells what the sizes of the job can process.

    ``steps``, (J,), are the evaluations in each step of the programme, over which the outlook reaches; no size is below
    ``at_least``.
    """
    highest = float(outlook.quantile_per_s(_HIGH_SCORE, _REACH if steps is STEPS else sum(steps)).max())
    sizes = list_sizes(
        job,
        memory.controller,
        memory.planned,
        at=law.newest,
        load_per_s=highest,
        left_out=left_out,
        steps=sum(steps),
        at_least=at_least,
    )
    if sizes is None:
        return None
    belief = memory.belief if is_stuck else _measure(job, sizes, memory.belief)
    sizes = _correct(sizes.take(_keep_bounded(job, sizes, select_sizes(sizes, outlook))), belief)
    level_per_s = max(float(np.exp(outlook.mean[0])) - outlook.offset, LEAST_PER_S)
    age_s = find_age(job, level_per_s, is_stuck=is_stuck)
    rows = _state_sizes(sizes, outlook, steps)
    return JobProblem(sizes, replace(rows, outside=_price_outside(job, sizes, law.newest + 1, steps)), age_s, belief)


def _keep_bounded(job: Snapshot, sizes: JobSizes, rows: Ints) -> Ints:
    """Return the rows with those that the job's schedules ask for in their place."""
    chosen = sizes.configurations[rows]
    graph = job.graph
    limits = upper_limits(graph, job.slots_max)
    wanted = job.bounds.add_within(chosen, graph.names, graph.slot_sharing_groups, limits)
    if len(wanted) == len(chosen):
        return rows
    is_wanted = (sizes.configurations[:, None, :] == wanted[None, :, :]).all(axis=2).any(axis=1)
    further = np.setdiff1d(np.flatnonzero(is_wanted), rows)
    return np.concatenate([rows, further])


def _price_outside(job: Snapshot, sizes: JobSizes, first: int, steps: tuple[int, ...]) -> Floats | None:
    """Return (J, K) what a size costs in each step in which schedules ask for another; None without any."""
    edges_s = STEP_S * (first + np.concatenate([np.zeros(1), np.cumsum(steps)]))
    graph = job.graph
    outside = job.bounds.share_outside(sizes.configurations, graph.names, graph.slot_sharing_groups, edges_s)
    if outside is None:
        return None
    return price_outside(job.options.costs) * outside * (np.array(steps) * STEP_S / 60)[:, None]


def _measure(job: Snapshot, sizes: JobSizes, belief: CapacityBelief) -> CapacityBelief:
    model_per_s = float(sizes.capacity_per_s[0, 0]) * math.exp(CAUTION * float(sizes.doubt[0]))
    return measure_capacity_error(belief, list_backlog_changes(job), model_per_s, float(sizes.doubt[0]))


def _correct(sizes: JobSizes, belief: CapacityBelief) -> JobSizes:
    """Return the sizes with the capacities and doubts that the backlog leaves."""
    doubt = sizes.doubt * math.sqrt(belief.share)
    factor = np.exp(belief.error + CAUTION * (sizes.doubt - doubt))
    return replace(sizes, capacity_per_s=sizes.capacity_per_s * factor[:, None], doubt=doubt)


def _state_sizes(sizes: JobSizes, outlook: LoadOutlook, steps: tuple[int, ...]) -> Sizes:
    capacity = np.exp(np.log(sizes.capacity_per_s).mean(axis=1))
    transient = outlook.noise * (capacity + outlook.offset) / capacity
    spread = np.sqrt(transient**2 + _CAPACITY_NOISE**2 + sizes.doubt**2)
    return Sizes(sizes.slots.astype(float), least_of_steps(np.log(sizes.capacity_per_s), steps), spread)


def find_age(job: Snapshot, level_per_s: float, *, is_stuck: bool) -> float:
    """Return the age of the backlog as the programme counts it: the time in which as much would arrive now, s.

    A backlog from a burst takes longer to work off than its age says once the load has fallen, and less than that while
    it rises; it is late in both cases.  Of a backlog that no size can help there is none to work off.  ``level_per_s``
    is the load that is expected next.
    """
    late_after_s = job.options.costs.late_after_s
    age = lag_s(job.observations)
    if job.restarting:
        return float(round(max(age, job.recovery.downtime_restart_s / 2)))
    if is_stuck or age < NO_AGE * late_after_s:
        return 0.0
    waiting = job.observations.waiting_records[-1][[job.graph.position(name) for name in job.graph.sources]]
    if not np.isfinite(waiting).any():
        return age
    volume = float(np.nansum(waiting)) / level_per_s
    least = min(age, _LATE_AT_LEAST * late_after_s) if age > late_after_s else 0.0
    return float(round(max(volume, least)))


def list_terms(job: Snapshot, carried_per_s: float) -> CostTerms:
    """Return the prices and stops of a job.

    A rescale waits for a checkpoint, whose barriers pass through the buffers with all that is in them, at the load that
    the running size sustains.
    """
    costs, recovery, windows = job.options.costs, job.recovery, job.observations
    sources = [job.graph.position(name) for name in job.graph.sources]
    inside = (windows.waiting_records - windows.pending_records)[-1:, sources]
    pass_s = min(float(np.nansum(np.maximum(inside, 0.0))) / carried_per_s, lag_s(windows))  # none is older
    return CostTerms(
        slot_price=costs.resource_weight / job.slots_max,
        late_price=costs.late_weight,
        rescale_price=costs.rescale_weight * (1 if stays_behind(job) else 1 + MARGIN),
        late_after_s=costs.late_after_s,
        rescale_s=recovery.downtime_rescale_s,
        restart_s=recovery.downtime_restart_s,
        lost_s=recovery.checkpoint_interval_s,
        failures_per_step=min(costs.failures_per_day / _STEPS_OF_A_DAY, 1.0),
        down_s=_REMAINING * recovery.downtime_restart_s if job.restarting else 0.0,
        recovery=None
        if costs.recovery_within_s is None
        else RecoveryGoal(costs.recovery_within_s, costs.recovery_probability),
        wait_s=float(round(expect_checkpoint_s(recovery, job.options.timing) + pass_s)),
        slots_wait_s=job.options.timing.slots_wait_s,
        taskmanager_slots=job.taskmanager_slots,
    )
