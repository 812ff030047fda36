"""Backlogs: when a job is enlarged to work one off, or already while it restarts after a failure, and the way back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.policies.conttune.reading import Reading
from models.policies.tidewise.memory import Look, NetMemory
from models.policies.tidewise.snapshot import Sight, conttune_step, known_room, lag_s
from models.scheduling.cost_model import worked_off_s
from models.scheduling.need import upper_limits

_SCALING = 0.7  # a share of what linear scaling promises: enlarging this far is a guess


def rescue(sight: Sight, reading: Reading | None, memory: NetMemory) -> tuple[Look | None, NetMemory]:
    """Enlarge a job that works off a backlog where that costs less than its lateness, and bring it back afterwards."""
    lag = lag_s(sight.observations)
    if memory.back_to is not None:
        if lag > sight.options.net_lag_s:
            return Look(None, f"works off a backlog of {lag:.0f} s"), memory
        return _bring_back(sight, reading, memory, memory.back_to)
    if not sight.options.net_rescues or lag <= sight.options.late_after_s:
        return None, memory
    wider = _enlarged(sight, memory, lag, sight.recovery.downtime_rescale_s)
    if wider is None:
        return None, memory
    return Look(wider.parallelism, f"a backlog of {lag:.0f} s {wider.why}"), _remembered(memory, sight, wider)


def await_restart(sight: Sight, memory: NetMemory) -> tuple[Look, NetMemory]:
    """Enlarge a job while it restarts after a failure, where its backlog will be worth it; else wait for it.

    What it will have to work off is not seen yet: the downtime of a restart, and what is processed again.
    """
    options, recovery = sight.options, sight.recovery
    if not (sight.restarting and options.net_rescues and options.net_restarts) or memory.back_to is not None:
        return Look(None, "the job is not running"), memory
    lag = max(lag_s(sight.observations), recovery.downtime_restart_s + recovery.checkpoint_interval_s)
    wider = _enlarged(sight, memory, lag, 0.0)
    if wider is None:
        return Look(None, "the job restarts after a failure; its backlog is not worth enlarging it"), memory
    why = f"the job restarts after a failure; its backlog of some {lag:.0f} s {wider.why}"
    return Look(wider.parallelism, why), _remembered(memory, sight, wider)


@dataclass(frozen=True, slots=True)
class _Wider:
    """A configuration to work a backlog off with.

    Attributes:
        parallelism: operator -> parallelism.
        why: how long the backlog takes as the job is and enlarged, to follow "a backlog".
    """

    parallelism: Mapping[str, int]
    why: str


def _enlarged(sight: Sight, memory: NetMemory, lag: float, stop_s: float) -> _Wider | None:
    """Return the wider configuration that costs least until a backlog is gone, changing there and back included.

    None where staying costs less, and where nothing is known of what the job can process.

    Args:
        sight: what is seen.
        memory: what is remembered.
        lag: age of the oldest record, s.
        stop_s: downtime of the change itself.
    """
    options, room = sight.options, known_room(sight, memory, sight.running)
    slots = max(sight.running.values())
    if room is None or slots >= sight.slots_max:
        return None
    sizes = np.arange(slots + 1, sight.slots_max + 1)
    rooms = room * (1 + _SCALING * (sizes / slots - 1))
    over_s = lag - options.late_after_s
    stay_s = float(worked_off_s(over_s, np.array(room)))
    go_s = stop_s + worked_off_s(over_s + stop_s, rooms)
    extra = (sizes - slots) * options.resource_weight / sight.slots_max
    costs = 2 * options.rescale_weight + (extra * (go_s + options.apply_every_s) + options.late_weight * go_s) / 60
    best = int(np.argmin(costs))
    if options.late_weight * stay_s / 60 <= costs[best]:
        return None
    limits = upper_limits(sight.graph, sight.slots_max)
    wanted = {
        name: min(math.ceil(sight.running[name] * int(sizes[best]) / slots), int(most))
        for name, most in zip(sight.graph.names, limits, strict=True)
    }
    if wanted == dict(sight.running):  # every operator is as wide as it may be
        return None
    return _Wider(wanted, f"would take {stay_s / 60:.0f} min to work off, enlarged {go_s[best] / 60:.0f} min")


def _remembered(memory: NetMemory, sight: Sight, wider: _Wider) -> NetMemory:
    return replace(memory, back_to=dict(sight.running), enlarged_to=dict(wider.parallelism))


def _bring_back(
    sight: Sight, reading: Reading | None, memory: NetMemory, back_to: Mapping[str, int]
) -> tuple[Look, NetMemory]:
    """Return to the configuration before the backlog, or to what the load needs where it has outgrown that one."""
    options, room = sight.options, known_room(sight, memory, back_to)
    fits = 1.0 if memory.planned else 1.0 / options.reactive_utilisation_most
    if room is None or room >= fits:
        return Look(back_to, "the backlog is gone for which the job was enlarged"), forgotten(memory)
    if reading is None:
        return Look(None, "the backlog is gone; no undisturbed window yet that says what the load needs"), memory
    wanted = conttune_step(sight, reading, memory)
    why = f"the backlog is gone, and the load has outgrown the {max(back_to.values())} slots of before"
    return Look(wanted, why), forgotten(memory)


def forgotten(memory: NetMemory) -> NetMemory:
    """Return the memory of a job that is not enlarged for a backlog."""
    return replace(memory, back_to=None, enlarged_to=None)
