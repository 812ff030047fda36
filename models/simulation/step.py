"""One step of the queueing model: who emits how much, and what Flink would report about it.

Buffers between operators hold about a second of records in Flink, which is short against a step; so records wait only
at the sources, and an operator that cannot keep up slows the sources above it within the same step (backpressure).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.simulation.fleet import Fleet
from models.simulation.spec import BoolArray, FloatArray
from models.simulation.state import FleetState, checkpoint_duration_s

_EMPTY = 1e-9
_FULL = 1.0 - _EMPTY


@dataclass(frozen=True, slots=True)
class Flow:
    """What went through the fleet in one step, all (J, O).

    Attributes:
        in_per_s: records that each operator took (a source: emitted), mean over the step.
        capacity_per_s: PA at the step's noise, while the job runs.
        busy, pressed (backpressured), idle: shares of the step; they add up to the share in which the job ran.
    """

    in_per_s: FloatArray
    capacity_per_s: FloatArray
    busy: FloatArray
    backpressured: FloatArray
    idle: FloatArray


def multiply(gain: FloatArray, rates: FloatArray) -> FloatArray:
    """Push source rates (J, O) through gains (J, O, O); returns input rates (J, O)."""
    pushed: FloatArray = np.matmul(gain, rates[..., None])[..., 0]
    return pushed


def allocate(fleet: Fleet, want: FloatArray, capacity: FloatArray) -> FloatArray:
    """Return what the sources emit, (J, O) records/s: as much as wanted and as the slowest operator below lets through.

    Sources that share an overloaded operator are slowed in proportion to what they want (credits are granted per
    channel); what one of them then leaves free is handed out in further rounds.
    """
    emit, more, free = np.zeros_like(want), want, capacity
    for _ in range(fleet.rounds):
        load = multiply(fleet.gain, more)
        share = np.divide(free, load, out=np.ones_like(load), where=load > free)
        emit = emit + more * np.where(fleet.below, share[..., None], 1.0).min(axis=1)
        more = want - emit
        if fleet.rounds == 1 or not (more > _EMPTY * want).any():
            break
        free = np.maximum(capacity - multiply(fleet.gain, emit), 0.0)
        # a source above a full operator asks for nothing more
        more = np.where((fleet.below & (free <= _EMPTY * capacity)[..., None]).any(axis=1), 0.0, more)
    return emit


def _backpressured(
    fleet: Fleet, want: FloatArray, emit: FloatArray, load: FloatArray, capacity: FloatArray
) -> BoolArray:
    """Return (J, O): whether an operator waits for a full operator further down that holds back some source."""
    held = want - emit > 1e-9 * want
    full = (load >= _FULL * capacity) & (load > 0.0)
    holding = full & (fleet.below & held[:, None, :]).any(axis=2)
    return np.asarray((fleet.above & holding[:, None, :]).any(axis=2))


def _checkpoint(fleet: Fleet, state: FleetState, emitted: FloatArray, step_s: float) -> None:
    """Complete and trigger checkpoints that fall into the step; positions are interpolated within it."""
    end = state.time_s + step_s
    _complete(state, end)
    due = (state.trigger_next < end) & np.isinf(state.pending_done)
    if due.any():
        share = np.clip((state.trigger_next - state.time_s) / step_s, 0.0, 1.0)[:, None]
        position = state.emitted - state.replayed + share * emitted
        state.pending_position = np.where(due[:, None], position, state.pending_position)
        state.pending_trigger = np.where(due, state.trigger_next, state.pending_trigger)
        duration = checkpoint_duration_s(fleet, state)
        state.pending_done = np.where(due, state.trigger_next + duration, state.pending_done)
        state.trigger_next = np.where(due, state.trigger_next + fleet.interval_s, state.trigger_next)
        _complete(state, end)


def _complete(state: FleetState, end_s: float) -> None:
    done = np.flatnonzero(state.pending_done <= end_s)
    if done.size:
        trigger = state.pending_trigger[done]
        state.complete_checkpoint(done, trigger, state.pending_done[done] - trigger)
        state.done_position[done] = state.pending_position[done]
        state.pending_done[done] = np.inf


def advance(fleet: Fleet, state: FleetState, rate_per_s: FloatArray, noise: FloatArray, step_s: float) -> Flow:
    """Advance the state in place by one step.

    The update is exact for rates that are constant within the step, except that the order of running and standing still
    inside one step is not resolved.

    Args:
        fleet: the jobs.
        state: updated in place.
        rate_per_s: (J, O) records per second that arrive at the sources, 0 elsewhere.
        noise: (J, O) factor on the processing ability, around 1.
        step_s: length of the step; at most the shortest checkpoint interval.
    """
    start, end = state.time_s, state.time_s + step_s
    down_s = np.clip(np.minimum(state.down_until, end) - np.maximum(state.down_from, start), 0.0, step_s)
    up = (1.0 - down_s / step_s)[:, None]
    capacity = fleet.capacity(state.parallelism) * noise
    want = state.backlog / step_s + rate_per_s
    emit = allocate(fleet, want, capacity * up)
    load = multiply(fleet.gain, emit)
    arrived, emitted = rate_per_s * step_s, emit * step_s
    _checkpoint(fleet, state, emitted, step_s)
    state.due_records += arrived
    state.emitted += emitted
    state.backlog = np.maximum(state.backlog + arrived - emitted, 0.0)
    state.records_in += np.where(fleet.is_source, 0.0, load) * step_s
    state.records_out += load * fleet.selectivity * step_s
    decay = np.exp(-step_s / fleet.retention_s)
    level = emit.sum(axis=1) * fleet.bytes_per_record * fleet.retention_s
    state.state_bytes = state.state_bytes * decay + level * (1.0 - decay)
    state.time_s = end
    busy = np.divide(load, capacity, out=np.zeros_like(load), where=capacity > 0.0)
    waiting = np.maximum(np.where(fleet.present, up - busy, 0.0), 0.0)
    backpressured = np.where(_backpressured(fleet, want, emit, load, capacity * up), waiting, 0.0)
    idle = waiting - backpressured
    state.busy_s += busy * step_s
    state.backpressured_s += backpressured * step_s
    state.idle_s += idle * step_s
    return Flow(load, capacity, busy, backpressured, idle)
