"""The reactive controller between plans: it sends due steps, and decides from measurements where the plan does not fit.

One state machine: the replay and the controller evaluate it every few minutes; the plan stage does once, for a job
without a usable forecast:

- A step is sent when it is due, never because the running configuration differs from the plan: the next plan, within
  the hour, starts from the configuration that runs then.
- A scale-down waits while the load is above its forecast, or above the capacity that would remain, and while the job is
  late, until it expires.
- A job that gets more than it can process is scaled up at once, whatever the plan.
- An operator that cannot grow does not decide: what it lacks is said, and the others are sized by their own load.
- A job that failed is scaled up while it restarts, where that saves more lateness than it costs: Flink's
  adaptive scheduler brings it back with what was requested meanwhile, so the change needs no stop of its own.
- Without a usable plan (no models yet, no season in the history) the measured load decides on both directions: up at
  once, down at the break-even (`scale_down.py`).

The size of a change is ContTune's step: conservative Bayesian optimisation over the observations of each operator,
linear as DS2 beyond them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lab.policies.planner.backlog import await_restart, forget_enlargement, work_off_backlog
from lab.policies.planner.controller_memory import ControllerMemory
from lab.policies.planner.known_capacity import (
    conttune_step,
    growable_utilisation,
    known_headroom,
    without_full,
)
from lab.policies.planner.scale_down import break_even_scale_down, update_low_loads
from lab.policies.tuning.observed_capacity import capacity_near
from lab.scheduling.planner_settings import PlannerSettings, ReactiveSettings
from models.policies.evaluation.pending_steps import PendingStep, latest_due
from models.policies.evaluation.reactive_decision import ReactiveDecision
from models.policies.evaluation.window_memory import learn_windows
from models.policies.job_snapshot import Snapshot
from models.policies.tidewise.full_operators import describe_stuck, find_stuck
from models.policies.tidewise.measurements import LATEST, lag_s
from models.policies.tidewise.present_windows import read_present
from models.policies.tidewise.unseen import describe_load_unseen, describe_unseen
from models.policies.tuning.reading import MeanMetrics
from models.scheduling.figures import format_count


def _reactive(snapshot: Snapshot) -> ReactiveSettings:
    return PlannerSettings.of(snapshot.options).reactive


def accept_plan(memory: ControllerMemory, due: tuple[PendingStep, ...]) -> ControllerMemory:
    """Return the memory after a new plan: its steps replace the old ones."""
    return replace(forget_enlargement(memory), due=due, planned=True, low_loads=())


def drop_plan(memory: ControllerMemory) -> ControllerMemory:
    """Return the memory of a job whose newest plan cannot be used: the measured load decides."""
    return replace(memory, due=(), planned=False)


def decide_without_windows(memory: ControllerMemory, now_s: int) -> tuple[ReactiveDecision, ControllerMemory]:
    """Return the decision for a job without recent windows: the step that is due is sent as planned."""
    latest, later = latest_due(memory.due, now_s)
    memory = replace(memory, due=later, low_loads=())  # the time without windows may have had a peak
    if latest is None or latest.valid_until_s <= now_s:
        return ReactiveDecision(None, "nothing was seen of it lately"), memory
    reason = f"{latest.reason}; nothing was seen of the job lately, so the step goes out as planned"
    return ReactiveDecision(latest.parallelism, reason, latest), memory


def decide_reactively(snapshot: Snapshot, memory: ControllerMemory) -> tuple[ReactiveDecision, ControllerMemory]:
    """Return what to do now, and the memory for the next evaluation."""
    memory = learn_windows(memory, snapshot.graph, snapshot.observations)
    if not snapshot.up:
        return await_restart(snapshot, memory)
    if memory.enlarged_to is not None and dict(memory.enlarged_to) != dict(snapshot.running):
        memory = forget_enlargement(memory)  # refused, or changed by somebody else since
    present, memory = read_present(snapshot, memory)
    reading, unseen = present.reading, present.unseen
    stuck = find_stuck(snapshot, reading, memory)
    step, memory = _take_due(snapshot, memory, present.load_per_s, is_stuck=bool(stuck))
    if step is not None:
        return ReactiveDecision(step.parallelism, step.reason, step), forget_enlargement(memory)
    decision, memory = work_off_backlog(snapshot, reading, memory)
    if decision is not None:
        return decision, memory
    if reading is None:
        return ReactiveDecision(None, "no undisturbed window since the last change"), memory
    if unseen.sources:
        why = describe_load_unseen(unseen)
        return ReactiveDecision(None, why, remark=why), replace(memory, low_loads=())
    decision, memory = _react(snapshot, reading, memory, is_stuck=bool(stuck))
    why = _describe_backlog(snapshot, decision) + describe_stuck(snapshot, reading, memory, stuck)
    why += describe_unseen(unseen)
    remark = decision.remark + why if decision.wanted is None else ""
    return replace(decision, reason=decision.reason + why, remark=remark.removeprefix("; ")), memory


def _describe_backlog(snapshot: Snapshot, decision: ReactiveDecision) -> str:
    """Return what becomes of a backlog for which a late job is left as it is, to follow another reason; or nothing."""
    lag = lag_s(snapshot.observations)
    if decision.wanted is not None or lag <= snapshot.options.costs.late_after_s:
        return ""
    return f"; a backlog of {lag:.0f} s is left to the running configuration"


def _take_due(
    snapshot: Snapshot, memory: ControllerMemory, load_per_s: float, *, is_stuck: bool
) -> tuple[PendingStep | None, ControllerMemory]:
    """Return the step to send, if any, and the memory without the steps that are past."""
    latest, later = latest_due(memory.due, snapshot.now_s)
    if latest is None:
        return None, memory
    frees_nothing = snapshot.graph.frees_nothing(snapshot.running, latest.parallelism)
    if latest.valid_until_s <= snapshot.now_s or frees_nothing:
        return None, replace(memory, due=later)
    falls = snapshot.graph.slots_of(latest.parallelism) < snapshot.graph.slots_of(snapshot.running)
    unexpected = load_per_s > _max_expected_rate(snapshot, latest) or _overloads(snapshot, memory, latest)
    behind = lag_s(snapshot.observations) > snapshot.options.costs.late_after_s and not is_stuck
    if falls and (unexpected or behind or snapshot.now_s < memory.held_until_s):
        return None, replace(memory, due=(latest, *later))
    return latest, replace(memory, due=later)


def _max_expected_rate(snapshot: Snapshot, step: PendingStep) -> float:
    """Return the highest load of the latest windows that is within the forecast, records/s.

    Until the windows lie wholly in the time of the step they show the load before it, which is no reason to wait.
    """
    since_s = snapshot.now_s - LATEST * snapshot.observations.window_s
    return max(step.load_most_per_s, step.load_before_most_per_s if since_s < step.apply_at_s else 0.0)


def _overloads(snapshot: Snapshot, memory: ControllerMemory, step: PendingStep) -> bool:
    """Whether the present load is more than a step's configuration can process, by the observations so far.

    Without this an event that the forecast did not expect would be followed by a scale-down at once.
    """
    able = without_full(snapshot, memory, step.parallelism)
    headroom_ratio = known_headroom(snapshot, able, step.parallelism, capacity_near)
    return headroom_ratio is not None and headroom_ratio * _reactive(snapshot).utilisation_max < 1.0


def _react(
    snapshot: Snapshot, reading: MeanMetrics, memory: ControllerMemory, *, is_stuck: bool
) -> tuple[ReactiveDecision, ControllerMemory]:
    if not memory.planned:
        return _follow(snapshot, reading, memory, is_stuck=is_stuck)
    reactive, used = _reactive(snapshot), growable_utilisation(snapshot, reading, memory)
    # Rates of single windows vary: the plan holds until there is a backlog.
    overloaded = used > reactive.utilisation_max and (
        lag_s(snapshot.observations) > reactive.lag_s or used > reactive.overload
    )
    if not overloaded:
        return ReactiveDecision(None, "as planned"), memory
    return _enlarge(snapshot, memory, conttune_step(snapshot, reading, memory), used, reactive.hold_s)


def _follow(
    snapshot: Snapshot, reading: MeanMetrics, memory: ControllerMemory, *, is_stuck: bool
) -> tuple[ReactiveDecision, ControllerMemory]:
    """Decide for a job without a plan: up at once, down when a low-load period has lasted until the break-even."""
    options, used = PlannerSettings.of(snapshot.options), growable_utilisation(snapshot, reading, memory)
    wanted = conttune_step(snapshot, reading, memory)
    memory = replace(memory, low_loads=update_low_loads(memory.low_loads, wanted, snapshot.now_s, snapshot.graph))
    if used > options.reactive.unplanned_utilisation_max:
        return _enlarge(snapshot, memory, wanted, used, 0)
    fall = break_even_scale_down(
        memory.low_loads,
        snapshot.running,
        snapshot.now_s,
        snapshot.slots_max,
        graph=snapshot.graph,
        downtime_s=snapshot.recovery.downtime_rescale_s,
        options=options,
    )
    if fall is None or (lag_s(snapshot.observations) > options.costs.late_after_s and not is_stuck):
        return ReactiveDecision(None, "no plan to follow; the measured load needs no change"), memory
    lasts = (snapshot.now_s - fall.since_s) / 60
    slots = snapshot.graph.slots_of(fall.parallelism)
    return ReactiveDecision(
        fall.parallelism, f"{format_count(slots, 'slot')} would have done for {lasts:.0f} min"
    ), memory


def _enlarge(
    snapshot: Snapshot, memory: ControllerMemory, wanted: Mapping[str, int], used: float, hold_s: int
) -> tuple[ReactiveDecision, ControllerMemory]:
    running = snapshot.running
    if all(wanted[name] <= running[name] for name in wanted):
        why = f"load uses {100 * used:.0f}% of what runs, and more parallelism would not help"
        return ReactiveDecision(None, why, remark=why), memory
    slots_of = snapshot.graph.slots_of
    if slots_of(wanted) < slots_of(running):  # a rise of one operator is no time to take slots away
        wanted = {name: max(count, running[name]) for name, count in wanted.items()}
    why = f"load uses {100 * used:.0f}% of what the running configuration can process"
    return ReactiveDecision(wanted, why), replace(memory, held_until_s=snapshot.now_s + hold_s)
