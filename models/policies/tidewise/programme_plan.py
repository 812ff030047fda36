"""The plan of the programme: what it expects to decide over the day, each step with its band and its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from include.domain.slots import count_paid
from include.utc import HOUR_S, MINUTE_S
from models.policies.evaluation.pending_steps import PendingStep
from models.policies.job_snapshot import Snapshot
from models.policies.protocol import Decision, Neighbour, Schedule
from models.policies.tidewise.job_sizes import CAUTION
from models.policies.tidewise.planned_steps import TOLERANCE, PlannedStep, spread_of
from models.policies.tidewise.programme_choice import JobProblem, list_terms, state_problem
from models.policies.tidewise.programme_memory import ProgrammeMemory
from models.policies.tidewise.slot_charges import SlotCharges
from models.programme.choice import ExpectedCosts, ProgrammeDecision, describe_choice, form_decision
from models.programme.day_outlook import find_late_chance, look_ahead_day, look_from
from models.programme.event_path import raise_outlook
from models.programme.horizon import spread_levels
from models.programme.law_state import LawState
from models.programme.load_outlook import LoadOutlook
from models.programme.load_paths import DAY, STEP_S
from models.programme.problem import CostsToGo, CostTerms, Sizes
from models.programme.trajectory import DAY_STEPS, SolvedDay, Trajectory, TrajectoryChange
from models.programme.waits import count_waiting_steps
from models.scheduling.expectation import Expectation
from models.scheduling.rescale_timing import ScheduleStep
from models.scheduling.slot_problem import CostTables, SlotProblem
from models.scheduling.step_band import StepBand

SHORT: Final = "; the cluster's slots are short then"
_SCORE: Final = 1.2816
_KEPT_S: Final = 6 * HOUR_S  # later steps of a plan are made again before they are due, or have expired


@dataclass(frozen=True, slots=True)
class JobDay:
    """What a plan is made from.

    Attributes:
        job: as it is at the time of planning.
        problem: its sizes.
        solved: the programme of the day.
        start_s: end of the newest step that was seen, epoch seconds.
        until_s: end of the plan.
        charges: what is paid for slots that are short.
        has_budget: whether the cluster's slots are allocated.
    """

    job: Snapshot
    problem: JobProblem
    solved: SolvedDay
    start_s: int
    until_s: int
    charges: SlotCharges = field(default_factory=SlotCharges)
    has_budget: bool = False

    @property
    def outlook(self) -> LoadOutlook:
        """Of the load after the newest step that was seen."""
        return self.solved.outlook

    @property
    def terms(self) -> CostTerms:
        """Of the job."""
        return self.solved.terms


def solve_day(
    job: Snapshot, memory: ProgrammeMemory, law: LawState, *, left_out: tuple[str, ...] = (), is_stuck: bool = False
) -> JobDay | None:
    """Return the programme of a job's day by its newest forecast; None while nothing tells what the sizes can process.

    Operators that are left out limit nothing; ``is_stuck``: one is short that cannot grow.
    """
    planned, newest = memory.planned, law.newest
    usual = look_ahead_day(law, planned.total, planned.total(newest, DAY + 1))
    outlook = raise_outlook(usual, planned.read_events(newest, DAY + 1), newest)
    problem = state_problem(job, memory, law, outlook, DAY_STEPS, left_out=left_out, is_stuck=is_stuck)
    if problem is None:
        return None
    solved = SolvedDay.solve(
        problem.rows, spread_levels(outlook, DAY_STEPS), outlook, list_terms(job, problem.carried_per_s), problem.age_s
    )
    until_s = job.now_s + job.options.horizon_h * HOUR_S
    return JobDay(job, problem, solved, (law.newest + 1) * STEP_S, until_s)


def state_slot_problem(day: JobDay) -> SlotProblem:
    """Return the job's problem for the allocation of a cluster's slots: its cheapest path is the plan."""
    path, terms = day.solved.price_path(), day.terms
    slots = count_paid(day.problem.sizes.slots, terms.taskmanager_slots)
    minutes = np.array(DAY_STEPS) * STEP_S / MINUTE_S
    own = terms.slot_price * minutes[:, None] * slots[None, :]
    costs = CostTables(slots, path.bin_cost - own, path.switch, minutes, terms.slot_price)
    edges_s = day.start_s - day.job.now_s + STEP_S * np.concatenate([np.zeros(1), np.cumsum(DAY_STEPS)])
    return SlotProblem(costs, edges_s)


def plan_day(day: JobDay) -> tuple[Schedule, tuple[PlannedStep, ...]]:
    """Return the plan of a day and its steps with their bands."""
    job = day.job
    paid = day.charges.per_slot(day.start_s, DAY_STEPS)
    margin = TOLERANCE * job.options.costs.rescale_weight
    made = day.solved.follow(margin, paid, avoids_lateness=not day.has_budget)
    turns = _drop_passed(day, made.turns)
    late_minutes = float(day.solved.expect_late(made.path).sum())
    if not turns:
        return Schedule(job.graph.names, (_hold(day, made),), late_minutes), ()
    ends = [*(_apply_at_s(day, one) for one in turns[1:]), day.until_s]
    decisions = []
    for turn, end_s, later in zip(turns, ends, [*turns[1:], None], strict=True):
        until = len(made.path) if later is None else later.step
        choice = _choose(day, turn, made.path, until, end_s)
        reason = f"{_explain(day, choice, _apply_at_s(day, turn), end_s)}; {turn.band.describe()}"
        near = _find_neighbours(day, turn, made.path, until, end_s)
        decisions.append(Decision(_place(day, turn, end_s, choice.late_minutes), reason, turn.band, *near))
    planned = tuple(_keep(day, *one) for one in zip(decisions, turns, strict=True))
    return Schedule(job.graph.names, tuple(decisions), late_minutes), tuple(
        one for one in planned if one.step.apply_at_s < job.now_s + _KEPT_S
    )


def _drop_passed(day: JobDay, turns: tuple[TrajectoryChange, ...]) -> list[TrajectoryChange]:
    """Return the changes within the plan; of those that lie before it only the last is left, as one from what runs."""
    passed = [one for one in turns if day.start_s + STEP_S * one.first <= day.job.now_s]
    later = [one for one in turns if day.job.now_s < day.start_s + STEP_S * one.first < day.until_s]
    if not passed:
        return later
    last = replace(passed[-1], place_from=0)
    return later if last.place_to == 0 else [last, *later]


def _apply_at_s(day: JobDay, turn: TrajectoryChange) -> int:
    return max(day.start_s + STEP_S * turn.first, day.job.now_s)


def _place(day: JobDay, turn: TrajectoryChange, end_s: int, late_minutes: float) -> ScheduleStep:
    """Return a change as a step of a schedule."""
    sizes, at_s = day.problem.sizes, _apply_at_s(day, turn)
    before, after = sizes.configurations[turn.place_from], sizes.configurations[turn.place_to]
    stops_s = at_s + round(turn.wait_s)
    takes_s = round(turn.wait_s + day.job.recovery.downtime_rescale_s)
    expected = _expect(day, turn.place_to, stops_s, max(end_s, stops_s), late_minutes)
    groups = day.job.graph.slot_sharing_groups
    return ScheduleStep(
        at_s, at_s + takes_s, max(end_s, at_s), before, after, 0, 0, expected, groups, day.job.taskmanager_slots
    )


def _hold(day: JobDay, made: Trajectory) -> Decision:
    """Return the decision of a day without any change."""
    now_s, current = day.job.now_s, day.problem.sizes.configurations[0]
    none = TrajectoryChange(0, 0, 0.0, 0, 0, day.problem.age_s, made.values, StepBand(0.0, math.inf, 0.0, math.inf))
    until = len(made.path)
    choice = _choose(day, none, made.path, until, day.until_s)
    expected = _expect(day, 0, now_s, day.until_s, choice.late_minutes)
    groups = day.job.graph.slot_sharing_groups
    step = ScheduleStep(now_s, now_s, day.until_s, current, current, 0, 0, expected, groups, day.job.taskmanager_slots)
    near = _find_neighbours(day, none, made.path, until, day.until_s)
    return Decision(step, _explain(day, choice, now_s, day.until_s), None, *near)


def _choose(day: JobDay, turn: TrajectoryChange, path: tuple[int, ...], until: int, end_s: int) -> ProgrammeDecision:
    """Return a decision in the figures of the programme at its time; it is compared with staying until the next one.

    That is at the step ``until``, or the end of the day, epoch seconds ``end_s``; the path is the size in each step.
    """
    order = [turn.place_from, *(row for row in range(len(turn.values.go)) if row != turn.place_from)]
    rows = day.problem.rows
    here = Sizes(rows.slots[order], rows.log_capacity[order, turn.step :], rows.sd[order])
    at_s = _apply_at_s(day, turn)

    def expect(place: int) -> ExpectedCosts:
        slot_hours = float(day.terms.count_paid(rows.slots[[place]])[0]) * (end_s - at_s) / HOUR_S
        return ExpectedCosts(_expect_late(day, turn, path, until, place), slot_hours)

    choice = form_decision(
        here,
        CostsToGo(turn.values.stay, turn.values.go[order]),
        look_from(day.outlook, turn.first),
        day.terms,
        expected=(expect(turn.place_to), expect(turn.place_from)),
        lasts_s=end_s - at_s,
        age_s=turn.age_s,
        now_s=day.start_s + STEP_S * turn.first,
        place=order.index(turn.place_to),
    )
    return replace(choice, until_s=day.until_s)


def _expect_late(day: JobDay, turn: TrajectoryChange, path: tuple[int, ...], until: int, row: int) -> float:
    """Return the late minutes that are expected from a change until the next one, were it to the size of a row."""
    slots = day.problem.rows.slots[[turn.place_from, row]].tolist()
    waits = count_waiting_steps(day.terms.find_wait_s(*slots), DAY_STEPS, turn.step)[0]
    begins = min(turn.step + waits, until)
    tried = (*path[: turn.step], *[turn.place_from] * (begins - turn.step), *[row] * (until - begins))
    return float(day.solved.expect_late(tried)[turn.step :].sum())


def _find_neighbours(
    day: JobDay, turn: TrajectoryChange, path: tuple[int, ...], until: int, end_s: int
) -> tuple[Neighbour | None, Neighbour | None]:
    """Return the sizes beside a change's with the next more and the next fewer paid slots, of several the cheapest."""
    more = day.solved.problem.paid_slots - day.solved.problem.paid_slots[turn.place_to]
    costs = np.where(np.arange(len(more)) == turn.place_from, turn.values.stay, turn.values.go)
    hours, sizes = max(end_s - _apply_at_s(day, turn), 0) / HOUR_S, day.problem.sizes

    def find(beyond: np.ndarray) -> Neighbour | None:
        if not beyond.any():
            return None
        nearest = beyond & (np.abs(more) == np.abs(more[beyond]).min())
        row = int(np.where(nearest, costs, np.inf).argmin())
        late_minutes = _expect_late(day, turn, path, until, row)
        return Neighbour(sizes.configurations[row], int(sizes.slots[row]), float(more[row]) * hours, late_minutes)

    return find(more > 0), find(more < 0)


def _explain(day: JobDay, choice: ProgrammeDecision, at_s: int, end_s: int) -> str:
    """Return the reason of a decision."""
    return describe_choice(choice, day.job.now_s) + (SHORT if day.charges.is_short(at_s, end_s) else "")


def _expect(day: JobDay, place: int, begin_s: int, end_s: int, late_minutes: float) -> Expectation:
    """Return what is expected of a size from one time to another, at the worst of it."""
    first = (begin_s - day.start_s) // STEP_S
    last = max(min(-(-(end_s - day.start_s) // STEP_S), DAY), first + 1)
    outlook = look_from(day.outlook, min(first, DAY - 1))
    median, high = (float(outlook.quantile_per_s(z, last - first).max()) for z in (0.0, _SCORE))
    sizes = day.problem.sizes
    cautious, doubt = float(sizes.capacity_per_s[place].min()), float(sizes.doubt[place])
    capacity, z = cautious * float(np.exp(CAUTION * doubt)), day.job.options.capacity.lower_bound_z
    return Expectation(
        load_q50_per_s=median,
        load_q90_per_s=high,
        capacity_per_s=capacity,
        capacity_lower_per_s=capacity * float(np.exp(-z * doubt)),
        capacity_upper_per_s=capacity * float(np.exp(z * doubt)),
        utilisation=median / capacity,
        p_late=find_late_chance(outlook, last - first, cautious, day.problem.rows.sd[place]),
        recovery_s=float(day.job.recovery.recovery_s(median, capacity, kind="restart")),
        late_minutes=late_minutes,
    )


def _keep(day: JobDay, decision: Decision, turn: TrajectoryChange) -> PlannedStep:
    """Return a step as the evaluations until the next plan keep it."""
    step, names = decision.step, day.job.graph.names
    target = dict(zip(names, map(int, step.parallelism_to), strict=True))
    most = turn.band.load_high_per_s
    pending = PendingStep(step.apply_at_s, step.valid_until_s, target, most, decision.reason)
    running = dict(zip(names, map(int, step.parallelism_from), strict=True))
    capacity = float(np.exp(day.problem.rows.log_capacity[turn.place_to, turn.step]))
    return PlannedStep(pending, running, step.slots, turn.band, capacity, spread_of(day.outlook))
