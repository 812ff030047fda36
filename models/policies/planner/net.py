"""The safety net between plans: which due step is sent, and when the job is steered by what is seen instead.

One state machine: the replay and the watch stage look with it every few minutes, the plan stage once with the plan, for
a job without a forecast to plan with:

- A step goes out when it is due, never because the running configuration differs from the plan: a plan that is not
  followed is made again within the hour, from what runs then.
- A fall waits while the load lies above what was forecast for then, or above what it would leave, until it expires.
- A job that gets more than it can process is enlarged at once, whatever the plan says.
- Without a usable plan (no models yet, no season in the history) the job is steered both ways by what is seen.

How far to go is ContTune's step: conservative Bayesian optimisation over what was observed of each operator, linear as
DS2 beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from include.domain.graph import JobGraph
from include.settings import Planner
from models.planner.costs import worked_off_s
from models.planner.need import upper_limits
from models.policies.conttune.history import KEEP, History, ability_about, ability_at
from models.policies.conttune.reading import Reading, fresh_windows, learn, read
from models.policies.conttune.small import Question, propose
from models.policies.observed import Observations
from models.policies.planner.agenda import Due
from models.recovery import DOWNTIME_PRIOR_S

_LATEST = 2  # windows that say what happens now,
_LATEST_S = 60  # but at least so many seconds: windows may be as short as five


@dataclass(frozen=True, slots=True)
class Sight:
    """What is seen of a job at a look.

    Attributes:
        now_s: epoch seconds.
        graph: the job.
        running: operator -> parallelism.
        up: whether it runs at all.
        observations: the latest windows, at least those since the last look.
        slots_max: most slots of the job.
        options: the planner's settings.
        rescale_s: expected downtime of a rescale.
    """

    now_s: int
    graph: JobGraph
    running: Mapping[str, int]
    up: bool
    observations: Observations
    slots_max: int
    options: Planner
    rescale_s: float = DOWNTIME_PRIOR_S["rescale"]


@dataclass(frozen=True, slots=True)
class NetMemory:
    """What is remembered between looks.

    Attributes:
        due: steps of the newest plan that were not sent yet, by time; empty without a plan.
        planned: whether the newest plan could be used; else the job is steered by what is seen.
        seen_until_s: end of the last window that was learnt from.
        histories: operator -> what was observed of it.
        shares: operator -> its input per record of all sources together, as last seen.
        excess: looks in a row at which fewer slots would have done.
        held_until_s: until then no fall is sent, since the load was above what the plans expected.
        back_to: configuration to return to when the backlog is gone for which the job was enlarged; None without one.
    """

    due: tuple[Due, ...] = ()
    planned: bool = False
    seen_until_s: float | None = None
    histories: Mapping[str, History] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    excess: int = 0
    held_until_s: int = 0
    back_to: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What comes of a look.

    Attributes:
        wanted: operator -> parallelism to be sent now; None to leave the job as it is.
        reason: one sentence.
        due: the step of the plan that is wanted; None for a step of the net's own, and without any.
    """

    wanted: Mapping[str, int] | None
    reason: str
    due: Due | None = None


def learnt(memory: NetMemory, graph: JobGraph, seen: Observations) -> NetMemory:
    """Return the memory after windows that it had not seen yet."""
    fresh = fresh_windows(seen, memory.seen_until_s)
    if not len(fresh):
        return memory
    until_s = float(fresh.window_start_s[-1] + fresh.window_s)
    return replace(memory, seen_until_s=until_s, histories=learn(memory.histories, graph, fresh, KEEP))


def accepted(memory: NetMemory, due: tuple[Due, ...]) -> NetMemory:
    """Return the memory after a new plan: its steps take the place of the old ones."""
    return replace(memory, due=due, planned=True, excess=0, back_to=None)


def unplanned(memory: NetMemory) -> NetMemory:
    """Return the memory of a job whose newest plan cannot be used: it is steered by what is seen."""
    return replace(memory, due=(), planned=False)


def unseen(memory: NetMemory, now_s: int) -> tuple[Look, NetMemory]:
    """Return what to do with a job of which nothing was seen lately: the step that is due goes out as planned."""
    latest, later = _latest_due(memory, now_s)
    if latest is None or latest.valid_until_s <= now_s:
        return Look(None, "nothing was seen of it lately"), replace(memory, due=later)
    reason = f"{latest.reason}; nothing was seen of the job lately, so the step goes out as planned"
    return Look(latest.parallelism, reason, latest), replace(memory, due=later)


def look(sight: Sight, memory: NetMemory) -> tuple[Look, NetMemory]:
    """Return what to do now, and the memory for the next look."""
    memory = learnt(memory, sight.graph, sight.observations)
    if not sight.up:
        return Look(None, "the job is not running"), memory
    reading = read(sight.graph, _latest(sight), sight.running)
    load = _load(sight, reading)
    if reading is not None and load > 0:
        shares = {name: need / load for name, need in reading.required_per_s.items() if math.isfinite(need)}
        memory = replace(memory, shares=shares)
    step, memory = _take_due(sight, memory, load)
    if step is not None:
        return Look(step.parallelism, step.reason, step), replace(memory, excess=0, back_to=None)
    told, memory = _rescue(sight, reading, memory)
    if told is not None:
        return told, memory
    if reading is None:
        return Look(None, "no undisturbed window since the last change"), memory
    return _steer(sight, reading, memory)


def _latest(sight: Sight) -> Observations:
    """Return the windows that say what happens now: the last ones that there are, undisturbed."""
    seen = sight.observations
    if not len(seen):
        return seen
    end_s = int(seen.window_start_s[-1]) + seen.window_s
    return fresh_windows(seen, end_s - max(_LATEST * seen.window_s, _LATEST_S))


def _load(sight: Sight, reading: Reading | None) -> float:
    """Return records/s of all sources, NaN when it is not known."""
    if reading is None:
        return math.nan
    return sum(reading.required_per_s[name] for name in sight.graph.sources)


def _latest_due(memory: NetMemory, now_s: int) -> tuple[Due | None, tuple[Due, ...]]:
    """Return the step that was due last, if one was, and those that lie ahead."""
    ripe = [step for step in memory.due if step.apply_at_s <= now_s]
    return (ripe[-1] if ripe else None), memory.due[len(ripe) :]


def _take_due(sight: Sight, memory: NetMemory, load_per_s: float) -> tuple[Due | None, NetMemory]:
    """Return the step to send, if any, and the memory without the steps that are past."""
    latest, later = _latest_due(memory, sight.now_s)
    if latest is None:
        return None, memory
    if latest.valid_until_s <= sight.now_s or dict(latest.parallelism) == dict(sight.running):
        return None, replace(memory, due=later)
    falls = max(latest.parallelism.values()) < max(sight.running.values())
    unexpected = load_per_s > _most_expected(sight, latest) or _overloads(sight, memory, latest)
    if falls and (unexpected or sight.now_s < memory.held_until_s):
        return None, replace(memory, due=(latest, *later))
    return latest, replace(memory, due=later)


def _most_expected(sight: Sight, step: Due) -> float:
    """Return the highest load that is as forecast, records/s, for the windows that are seen.

    Until they lie wholly in the time of the step they show the load before it, which is no reason to wait.
    """
    since_s = sight.now_s - _LATEST * sight.observations.window_s
    return max(step.load_most_per_s, step.load_before_most_per_s if since_s < step.apply_at_s else 0.0)


def _overloads(sight: Sight, memory: NetMemory, step: Due) -> bool:
    """Whether the load that arrives now is more than a step's configuration can process, by what was seen so far.

    A forecast that an event has overtaken lets the load fall back at once.
    """
    room = _known_room(sight, memory, step.parallelism, ability_about)
    return room is not None and room * sight.options.net_utilisation < 1.0


def _steer(sight: Sight, reading: Reading, memory: NetMemory) -> tuple[Look, NetMemory]:
    options = sight.options
    used = utilisation(sight, reading, memory)
    most = options.net_utilisation if memory.planned else options.reactive_utilisation_most
    # One window's rates waver; where there is a plan, it is believed until records really pile up.
    if used > most and (
        not memory.planned or lag_s(sight.observations) > options.net_lag_s or used > options.net_overload
    ):
        wanted = _step(sight, reading, memory, options.net_target if memory.planned else options.reactive_utilisation)
        if max(wanted.values()) > max(sight.running.values()):
            why = f"load uses {100 * used:.0f}% of what the running configuration can process"
            held_s = sight.now_s + (options.net_hold_s if memory.planned else 0)
            return Look(wanted, why), replace(memory, excess=0, held_until_s=held_s)
        return Look(None, "more parallelism would not help"), replace(memory, excess=0)
    if memory.planned:
        return Look(None, "as planned"), memory
    wanted = _step(sight, reading, memory, options.reactive_utilisation)
    slots, running = max(wanted.values()), max(sight.running.values())
    excess = memory.excess + 1 if slots <= running * (1 - options.reactive_saving) else 0
    if excess >= options.reactive_patience:
        return Look(wanted, f"{slots} slots have done instead of {running} for a while"), replace(memory, excess=0)
    return Look(None, "steered by what is seen; nothing to change"), replace(memory, excess=excess)


def _rescue(sight: Sight, reading: Reading | None, memory: NetMemory) -> tuple[Look | None, NetMemory]:
    """Enlarge a job that works off a backlog where that costs less than its lateness, and bring it back afterwards."""
    options, lag = sight.options, lag_s(sight.observations)
    if memory.back_to is not None:
        if lag > options.net_lag_s:
            return Look(None, f"works off a backlog of {lag:.0f} s"), memory
        return _bring_back(sight, reading, memory, memory.back_to)
    if not options.net_rescues or lag <= options.late_after_s:
        return None, memory
    room = _known_room(sight, memory, sight.running)
    if room is None:
        return None, memory
    slots = max(sight.running.values())
    factor = sight.slots_max / slots
    limits = upper_limits(sight.graph, sight.slots_max)
    wanted = {
        name: min(math.ceil(sight.running[name] * factor), int(most))
        for name, most in zip(sight.graph.names, limits, strict=True)
    }
    wider = room * (1 + _SCALING * (max(wanted.values()) / slots - 1))
    over_s = lag - options.late_after_s
    stay_s = float(worked_off_s(over_s, np.array(room)))
    go_s = sight.rescale_s + float(worked_off_s(over_s + sight.rescale_s, np.array(wider)))
    extra = (max(wanted.values()) - slots) * options.resource_weight / sight.slots_max
    price = 2 * options.rescale_weight + extra * (go_s + options.apply_every_s) / 60
    if options.late_weight * (stay_s - go_s) / 60 <= price:
        return None, memory
    why = f"a backlog of {lag:.0f} s would take {stay_s / 60:.0f} min to work off, enlarged {go_s / 60:.0f} min"
    return Look(wanted, why), replace(memory, back_to=dict(sight.running), excess=0)


def _bring_back(
    sight: Sight, reading: Reading | None, memory: NetMemory, back_to: Mapping[str, int]
) -> tuple[Look, NetMemory]:
    """Return to the configuration before the backlog, or to what the load needs where it has outgrown that one."""
    options, room = sight.options, _known_room(sight, memory, back_to)
    fits = 1.0 if memory.planned else 1.0 / options.reactive_utilisation_most
    if room is None or room >= fits:
        return Look(back_to, "the backlog is gone for which the job was enlarged"), replace(memory, back_to=None)
    if reading is None:
        return Look(None, "the backlog is gone; no undisturbed window yet that says what the load needs"), memory
    wanted = _step(sight, reading, memory, options.net_target if memory.planned else options.reactive_utilisation)
    why = f"the backlog is gone, and the load has outgrown the {max(back_to.values())} slots of before"
    return Look(wanted, why), replace(memory, back_to=None)


_SCALING = 0.7  # a share of what linear scaling promises: enlarging this far is a guess


def _known_room(
    sight: Sight,
    memory: NetMemory,
    parallelism: Mapping[str, int],
    ability_of: Callable[[History, int], float] = ability_at,
) -> float | None:
    """Return capacity over load at a parallelism from what was seen there before; None when it never was.

    The windows of a restart are disturbed and say nothing, but the load does: arrivals are counted at the broker.
    """
    last = sight.observations.rows(np.arange(max(len(sight.observations) - _LATEST, 0), len(sight.observations)))
    arriving = last.target_data_rate_per_s
    if (
        not len(last)
        or not np.isfinite(arriving[-1][[sight.graph.position(name) for name in sight.graph.sources]]).all()
    ):
        return None
    load = sum(float(arriving[-1][sight.graph.position(name)]) for name in sight.graph.sources)
    rooms = []
    for name, share in memory.shares.items():
        ability = ability_of(memory.histories.get(name, ()), parallelism.get(name, 0))
        if math.isfinite(ability) and share * load > 0:
            rooms.append(ability / (share * load))
    return min(rooms) if rooms else None


def lag_s(seen: Observations) -> float:
    """Return the age of the oldest record that waits at the end of the last window, s; 0 when it was not measured."""
    if not len(seen):
        return 0.0
    last = seen.latency_ms[-1]
    return float(np.max(last[np.isfinite(last)], initial=0.0)) / 1000.0


def utilisation(sight: Sight, reading: Reading, memory: NetMemory) -> float:
    """Return the highest share of its ability that an operator needs; 0 when none is known.

    The ability is the mean of what was seen at the running parallelism lately ("mean reversion" of ContTune).
    """
    shares = []
    for name, need in reading.required_per_s.items():
        ability = ability_at(memory.histories.get(name, ()), sight.running[name])
        shares.append(need / (ability if math.isfinite(ability) else reading.ability_per_s[name]))
    return max((share for share in shares if math.isfinite(share)), default=0.0)


def _step(sight: Sight, reading: Reading, memory: NetMemory, target: float) -> dict[str, int]:
    """Return ContTune's step for the load that is seen, at a target utilisation."""
    names = sight.graph.names
    limits = dict(zip(names, upper_limits(sight.graph, sight.slots_max).tolist(), strict=True))
    questions = [
        Question(
            history=memory.histories.get(name, ()),
            required_per_s=reading.required_per_s[name] / target,
            parallelism=sight.running[name],
            ability_per_s=reading.ability_per_s[name],
            p_max=limits[name],
        )
        for name in names
    ]
    answers = propose(questions)
    return {name: min(answer.parallelism, limits[name]) for name, answer in zip(names, answers, strict=True)}
