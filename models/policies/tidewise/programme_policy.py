"""The programme as a policy: its plan is the trajectory that it expects, and every evaluation decides anew.

What a plan's step and an evaluation decide is held together by the step's band: within it the step goes out as planned,
outside of it the evaluation's own decision stands and says which figure is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from include.utc import HOUR_S
from models.policies.evaluation.reactive_decision import ReactiveDecision
from models.policies.evaluation.window_memory import learn_windows
from models.policies.immediate_change import hold
from models.policies.job_snapshot import Snapshot
from models.policies.protocol import Schedule, Situation
from models.policies.tidewise.full_operators import describe_stuck, find_stuck
from models.policies.tidewise.measurements import LATEST, count_waiting, is_behind, latest_windows
from models.policies.tidewise.past_law import learn_past_loads
from models.policies.tidewise.planned_steps import PlannedStep, StepProgress, find_due, find_outside
from models.policies.tidewise.present_windows import JobReading, read_present
from models.policies.tidewise.programme_choice import HARDLY_MORE, JobDecision, choose_job_size
from models.policies.tidewise.programme_memory import PlannedLoad, ProgrammeMemory, StepCount
from models.policies.tidewise.programme_plan import SHORT, JobDay, plan_day, solve_day, state_slot_problem
from models.policies.tidewise.slot_charges import SlotCharges
from models.policies.tidewise.step_loads import StepLoad, list_step_loads
from models.policies.tidewise.unseen import describe_load_unseen, describe_unseen
from models.programme.choice import describe_choice
from models.programme.law_state import LawState
from models.programme.load_law import expect_now, observe
from models.programme.load_paths import DAY, STEP_S
from models.scheduling.figures import format_clock, format_count
from models.scheduling.slot_problem import SlotProblem

LEAST_STEPS: Final = 2
_UNSEEN: Final = "nothing was seen of it lately"
_UNSEEN_CHANGE: Final = "no undisturbed window since the last change"
_UNKNOWN_LOAD: Final = "too little was seen of its load yet"
_UNKNOWN_SIZES: Final = "nothing tells yet what its sizes can process"
_UNSEEN_STEPS: Final = 3
"""Steps without a load after which a due step goes out as planned."""


@dataclass(frozen=True, slots=True)
class _JobState:
    """A job after its windows were read.

    Attributes:
        memory: with the law after them.
        law: of its load.
        present: what the latest windows tell.
        stuck: operators that are short and cannot grow.
    """

    memory: ProgrammeMemory
    law: LawState
    present: JobReading
    stuck: tuple[str, ...]


class Programme:
    """Decides at every evaluation by a small Markov decision process over size, load and age of the backlog."""

    def first_memory(self) -> ProgrammeMemory:
        """Return the memory of a job that was never evaluated."""
        return ProgrammeMemory()

    def decide(self, situation: Situation, memory: ProgrammeMemory) -> tuple[Schedule, ProgrammeMemory]:
        """Return the steps that it expects of itself, and the memory with them and with the load that is expected."""
        known, why = _read_situation(situation, memory)
        if why:
            return hold(situation, why), known.memory
        job, memory = situation.job, known.memory
        day = _solve_day(job, known)
        if day is None:
            return hold(situation, _UNKNOWN_SIZES), memory
        charges = SlotCharges.of(situation)
        schedule, due = plan_day(replace(day, charges=charges, has_budget=situation.slot_prices.has_budget))
        first, *later = schedule.decisions
        first = replace(first, reason=first.reason + _describe_obstacles(job, known))
        made = replace(schedule, decisions=(first, *later))
        return made, replace(memory, due=due, charges=charges.shorten())

    def accept_plan(self, memory: ProgrammeMemory, left: ProgrammeMemory) -> ProgrammeMemory:
        """Return the memory after a newer plan: its load and its steps replace those of the last one.

        Of a job that was evaluated before its history was known, the plan's law of the load counts: it has seen more.
        """
        knows_more = LawState.read(left.law).seen > LawState.read(memory.law).seen + DAY
        law = left.law if knows_more else memory.law
        return replace(memory, law=law, planned=left.planned, due=left.due, charges=left.charges)

    def drop_plan(self, memory: ProgrammeMemory) -> ProgrammeMemory:
        """Return the memory of a job without a plan that counts: none of its steps is due any more."""
        return replace(memory, due=(), charges=SlotCharges()) if memory.due or memory.charges.per_minute else memory

    def evaluate(self, job: Snapshot, memory: ProgrammeMemory) -> tuple[ReactiveDecision, ProgrammeMemory]:
        """Return what a job should run at from now on."""
        known = _read(job, memory)
        memory, law, unseen = known.memory, known.law, known.present.unseen
        if not (job.up or job.restarting):
            return ReactiveDecision(None, "the job is not running"), memory
        if unseen.sources:
            why = describe_load_unseen(unseen)
            return ReactiveDecision(None, why, remark=why), memory
        if law.seen < LEAST_STEPS:
            return _rise_early(job, known), memory
        # What is read again is what any later reader of the memory has.
        law = LawState.read(memory.law)
        _learn_present(law, job, known)
        if job.up and job.now_s > (law.newest + 1 + _UNSEEN_STEPS) * STEP_S and find_due(memory.due, job.now_s):
            return _follow(memory, job.now_s, job)
        is_held = job.up and _has_just_changed(job) and find_due(memory.due, job.now_s) is None
        chosen = (
            None
            if is_held
            else choose_job_size(job, memory, law, left_out=unseen.busy_sources, is_stuck=bool(known.stuck))
        )
        if chosen is None:
            return ReactiveDecision(None, _UNSEEN_CHANGE if is_held else _UNKNOWN_SIZES), memory
        paused = memory.taken_back.describe(job.now_s)
        memory = replace(memory, belief=chosen.belief, taken_back=chosen.taken_back)
        short = SHORT if memory.charges.is_short(job.now_s, job.now_s + HOUR_S) else ""
        limit = "" if known.stuck else _describe_limit(job, chosen)
        return _meet_plan(job, memory, chosen, _describe_obstacles(job, known), short + paused + limit)

    def follow(self, memory: ProgrammeMemory, now_s: int) -> tuple[ReactiveDecision, ProgrammeMemory]:
        """Return the step of the plan that is due, for a job of which nothing was seen lately."""
        return _follow(memory, now_s, None)


def price_slots(situation: Situation, memory: ProgrammeMemory) -> SlotProblem | None:
    """Return the job's problem for the allocation of a cluster's slots; None of a job that its plan holds."""
    known, why = _read_situation(situation, memory)
    day = None if why else _solve_day(situation.job, known)
    return None if day is None else state_slot_problem(day)


def _follow(memory: ProgrammeMemory, now_s: int, job: Snapshot | None) -> tuple[ReactiveDecision, ProgrammeMemory]:
    """Return the step of the plan that is due, for a job of which no window was seen lately; None: nor what runs."""
    due = find_due(memory.due, now_s)
    if due is None:
        return ReactiveDecision(None, _UNSEEN), memory
    if job is not None and job.graph.frees_nothing(job.running, due.step.parallelism):
        return ReactiveDecision(None, _UNSEEN), _pass(memory, due)
    reason = f"{due.step.reason}; nothing was seen of the job lately, so the step goes out as planned"
    return ReactiveDecision(due.step.parallelism, reason, due.step), _count(memory, due, is_carried=True)


def _rise_early(job: Snapshot, known: _JobState) -> ReactiveDecision:
    """Return what the latest windows ask for while the law is too young: more where they show a need, never less.

    A law of less than two steps knows no error of its own, so it is no ground for giving up slots; but a job that gets
    more than it can process is not to wait for ten minutes.
    """
    law = LawState.read(known.memory.law)
    if not known.present.load_per_s > 0:
        return ReactiveDecision(None, _UNKNOWN_LOAD)
    _learn_present(law, job, known)
    busy = known.present.unseen.busy_sources
    chosen = choose_job_size(job, known.memory, law, left_out=busy, is_stuck=bool(known.stuck))
    wanted = {} if chosen is None or not chosen.choice.place else chosen.form_parallelism(job.graph.names)
    if chosen is None or not wanted or any(count < job.running[name] for name, count in wanted.items()):
        return ReactiveDecision(None, _UNKNOWN_LOAD)
    reason = f"{describe_choice(chosen.choice, job.now_s)}; {_UNKNOWN_LOAD}, so its latest windows alone decide"
    return ReactiveDecision(wanted, reason + _describe_obstacles(job, known))


def _learn_present(law: LawState, job: Snapshot, known: _JobState) -> None:
    """Learn from the latest windows, where they show a later time than the newest step, as from a step of their own.

    A rise is known at once.  A fall is when its step has ended, but of a job that is behind: a minute may be a dip.
    """
    windows, present = latest_windows(job), known.present
    if present.reading is None or not present.load_per_s > 0:
        return
    middle_s = (windows.window_start_s[0] + windows.window_start_s[-1] + windows.window_s) / 2
    if middle_s > (law.newest + 0.5) * STEP_S:
        at = max(job.now_s // STEP_S, law.newest + 1)
        is_least = not (present.reading.arrivals_known and is_behind(job))
        _learn(law, StepLoad(at, present.load_per_s, is_least=is_least), known.memory.planned)


def _has_just_changed(job: Snapshot) -> bool:
    """Whether a job ran otherwise in its last undisturbed window, and that is not long ago.

    What it still restores, and reads again, tells nothing of its size.
    """
    windows = job.observations
    calm = np.flatnonzero(~windows.disturbed)
    if not len(calm):
        return False
    ran, running = windows.parallelism[calm[-1]], np.array([job.running[name] for name in job.graph.names], np.int64)
    since_s = job.now_s - (windows.window_start_s[calm[-1]] + windows.window_s)
    return bool(((ran >= 1) & (ran != running)).any()) and since_s <= max(STEP_S, LATEST * windows.window_s)


def _read_situation(situation: Situation, memory: ProgrammeMemory) -> tuple[_JobState, str]:
    """Return what is known of a job that is planned, and why it is left as it is; empty where it is not."""
    job, planned = situation.job, PlannedLoad.of(situation.forecast)
    if situation.past_loads is not None and not memory.law:
        (began,) = learn_past_loads([situation.past_loads])
        memory = replace(memory, law=began.law)
    known = _read(job, replace(memory, due=(), charges=SlotCharges()), planned)
    if known.present.unseen.sources:
        return known, describe_load_unseen(known.present.unseen)
    return known, _UNKNOWN_LOAD if known.law.seen < LEAST_STEPS else ""


def _solve_day(job: Snapshot, known: _JobState) -> JobDay | None:
    busy = known.present.unseen.busy_sources
    return solve_day(job, known.memory, known.law, left_out=busy, is_stuck=bool(known.stuck))


def _read(job: Snapshot, memory: ProgrammeMemory, newer: PlannedLoad | None = None) -> _JobState:
    """Return what is known of a job with its windows, which are learnt from once.

    ``newer`` is what a new plan expects of the load: none of the windows could be held against it.
    """
    law = LawState.read(memory.law)
    loads = list_step_loads(job.graph, job.observations, law.newest)
    for one in loads:
        _learn(law, one, (newer if one is loads[-1] else None) or memory.planned)
    memory = memory if newer is None else replace(memory, planned=newer)
    learnt = learn_windows(memory.controller, job.graph, job.observations)
    present, learnt = read_present(job, learnt)
    stuck = find_stuck(job, present.reading, learnt)
    return _JobState(replace(memory, law=law.write(), controller=learnt), law, present, stuck)


def _learn(law: LawState, step: StepLoad, planned: PlannedLoad) -> None:
    """Learn from the load of a step, without what people know to raise it."""
    change = planned.find_change(step.at)
    usual_per_s = expect_now(law, step.at) if change.is_edge and law.seen else step.load_per_s / change.factor
    observe(law, step.at, usual_per_s, planned.total, is_least=step.is_least)


def _describe_obstacles(job: Snapshot, known: _JobState) -> str:
    """Return what cannot grow and what is not known of a job, to follow a reason; empty without either."""
    reading, text = known.present.reading, _describe_backlog(job) + describe_unseen(known.present.unseen)
    return text if reading is None else describe_stuck(job, reading, known.memory.controller, known.stuck) + text


def _describe_limit(job: Snapshot, chosen: JobDecision) -> str:
    """Return that no size carries more than the one of a job that stays short, to follow a reason; else nothing."""
    choice, most_per_s = chosen.choice, float(chosen.sizes.capacity_per_s[:, 0].max())
    is_short = choice.is_behind and choice.slots_to < job.slots_max and choice.load_high_per_s > choice.capacity_per_s
    if not is_short or most_per_s > HARDLY_MORE * choice.capacity_per_s:
        return ""
    return "; more slots bring nothing: the machines, or what the job calls, are the limit"


def _describe_backlog(job: Snapshot) -> str:
    """Return how the backlog of a job that is behind changes; empty without any, or where that is not known."""
    before, now = count_waiting(job)
    if not is_behind(job) or math.isnan(now - before):
        return ""
    return f"; {now:,.0f} records wait, {before:,.0f} a window before"


def _meet_plan(
    job: Snapshot, memory: ProgrammeMemory, chosen: JobDecision, why: str, short: str
) -> tuple[ReactiveDecision, ProgrammeMemory]:
    """Return the due step where what is measured is within its band, else what the programme decides."""
    choice = chosen.choice
    wanted = chosen.form_parallelism(job.graph.names) if choice.place else None
    reason = describe_choice(choice, job.now_s) + short + why
    alone = ReactiveDecision(wanted, reason, remark="" if wanted else why.removeprefix("; "))
    due = None if job.restarting else find_due(memory.due, job.now_s)
    if due is None:
        return alone, memory
    if job.graph.frees_nothing(job.running, due.step.parallelism):
        return alone, _pass(memory, due)
    outside = find_outside(due, job.graph, job.running, chosen.measured, job.options.costs.rescale_weight)
    if not outside or (wanted is not None and choice.slots_to == due.slots):
        decided = ReactiveDecision(due.step.parallelism, due.step.reason + why, due.step)
        return decided, _count(memory, due, is_carried=True)
    planned = f"the plan's {format_count(due.slots, 'slot')} at {format_clock(due.step.apply_at_s, job.now_s)}"
    stays_out = f"{planned} stays out: {outside}"
    decided = replace(alone, reason=f"{reason}; {stays_out}")
    if wanted is None:
        decided = replace(decided, due=due.step, held_back=stays_out)
    return decided, _count(memory, due, is_carried=False)


def _pass(memory: ProgrammeMemory, due: PlannedStep) -> ProgrammeMemory:
    """Return the memory after a due step that the job has already, or that would stop it for nothing."""
    after = _count(memory, due, is_carried=True)
    return replace(after, due=after.due[1 + memory.due.index(due) :])


def _count(memory: ProgrammeMemory, due: PlannedStep, *, is_carried: bool) -> ProgrammeMemory:
    """Return the memory with a due step counted, and once as carried out."""
    count, counted = memory.count, due.counted
    after = StepProgress.AS_PLANNED if is_carried or counted is StepProgress.AS_PLANNED else StepProgress.DUE
    if after is counted:
        return memory
    is_more = after is StepProgress.AS_PLANNED
    count = StepCount(count.due + (counted is StepProgress.NOT_YET), count.as_planned + is_more)
    steps = tuple(replace(one, counted=after) if one is due else one for one in memory.due)
    return replace(memory, due=steps, count=count)
