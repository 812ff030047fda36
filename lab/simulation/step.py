"""One step of a simulated fleet: what its sources emit, and what Flink would report about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lab.simulation.buffers import fill
from lab.simulation.bursts import find_blocked, fire
from lab.simulation.fleet import Fleet
from lab.simulation.state import FleetState, compute_checkpoint_duration
from models.arrays import Floats


@dataclass(frozen=True, slots=True)
class StepFlow:
    """What went through the fleet in one step, all (J, O).

    Attributes:
        in_per_s: records that each operator took in (a source too, whether its counters show it or not), mean over the
            step.
        through_per_s: of these records those whose output was emitted in the step; differs from ``in_per_s`` for an
            operator that emits in bursts.
        capacity_per_s: capacity at the step's noise, while the job runs.
        working: share of the step in which records were processed.
        busy, backpressured, idle: shares of the step as Flink reports them; they add up to the share in which the job
            ran.  A source that waits inside ``pollNext`` is busy meanwhile.
    """

    in_per_s: Floats
    through_per_s: Floats
    capacity_per_s: Floats
    working: Floats
    busy: Floats
    backpressured: Floats
    idle: Floats


def _take_checkpoints(fleet: Fleet, state: FleetState, moved: Floats, step_s: float) -> None:
    """Complete and trigger checkpoints that fall into the step; positions are interpolated within it.

    ``moved`` is (J, O) by how much they change in the step.
    """
    end = state.time_s + step_s
    _complete_checkpoints(state, end)
    due = (state.trigger_next < end) & np.isinf(state.pending_done)
    if due.any():
        share = np.clip((state.trigger_next - state.time_s) / step_s, 0.0, 1.0)[:, None]
        taken = state.emitted - state.replayed + state.buffered
        before = np.where(fleet.in_bursts, state.held + state.fired, taken)
        position = before + share * moved
        state.pending_position = np.where(due[:, None], position, state.pending_position)
        state.pending_trigger = np.where(due, state.trigger_next, state.pending_trigger)
        duration = compute_checkpoint_duration(fleet, state)
        state.pending_done = np.where(due, state.trigger_next + duration, state.pending_done)
        next_s = state.trigger_next + np.maximum(fleet.interval_s, duration)  # one after the other, as Flink's default
        state.trigger_next = np.where(due, next_s, state.trigger_next)
        _complete_checkpoints(state, end)


def _complete_checkpoints(state: FleetState, end_s: float) -> None:
    done = np.flatnonzero(state.pending_done <= end_s)
    if done.size:
        trigger = state.pending_trigger[done]
        state.complete_checkpoint(done, trigger, state.pending_done[done] - trigger)
        state.done_position[done] = state.pending_position[done]
        state.pending_done[done] = np.inf


def work_until(
    fleet: Fleet, state: FleetState, stop_at_s: Mapping[int, float], rate_per_s: Floats, noise: Floats
) -> None:
    """Let jobs that stop within the step that comes work until they do; :func:`advance` does the rest of it.

    Otherwise a job could process before its stop what arrives after it.  What it counts until then is gone with it.

    Args:
        fleet: the jobs.
        state: updated in place, but for its time.
        stop_at_s: job -> time at which it stops.
        rate_per_s: (J, O) of the step, as of :func:`advance`.
        noise: (J, O) the same.
    """
    span_s = np.zeros((len(state.down_from), 1))
    for job, at_s in stop_at_s.items():
        span_s[job] = at_s - state.time_s
    waiting = state.backlog + state.fired
    waiting_per_s = np.divide(waiting, span_s, out=np.zeros_like(waiting), where=span_s > 0.0)
    emit = fleet.network.allocate(waiting_per_s + rate_per_s, fleet.capacity(state.parallelism) * noise)
    _gather(fleet, state, fleet.network.compute_load(emit) * span_s, emit * span_s)
    arrived, emitted = rate_per_s * span_s, np.where(fleet.in_bursts, 0.0, emit) * span_s
    state.due_records += arrived
    state.emitted += emitted
    state.backlog = np.maximum(state.backlog + arrived - emitted, 0.0)


def _gather(fleet: Fleet, state: FleetState, taken: Floats, emitted: Floats) -> None:
    """Add what operators that emit in bursts took in, (J, O) records, and take away what they emitted."""
    state.held += np.where(fleet.in_bursts, taken, 0.0)
    state.fired = np.where(fleet.in_bursts, np.maximum(state.fired - emitted, 0.0), 0.0)


def advance(fleet: Fleet, state: FleetState, rate_per_s: Floats, noise: Floats, step_s: float) -> StepFlow:
    """Advance the state in place by one step.

    The update is exact for rates that are constant within the step, except that the order of standing still and running
    again inside one step is not resolved; a job that stops within it has worked until then (:func:`work_until`).

    Args:
        fleet: the jobs.
        state: updated in place.
        rate_per_s: (J, O) records per second that arrive at the sources, 0 elsewhere.
        noise: (J, O) factor on the capacity, around 1.
        step_s: length of the step; at most the shortest checkpoint interval.
    """
    start, end = state.time_s, state.time_s + step_s
    down_s = np.clip(np.minimum(state.down_until, end) - np.maximum(state.down_from, start), 0.0, step_s)
    worked_s = np.where(state.down_from < end, np.clip(state.down_from - start, 0.0, step_s), 0.0)
    rest = (1.0 - worked_s / step_s)[:, None]
    up = rest - (down_s / step_s)[:, None]
    capacity = fleet.capacity(state.parallelism) * noise
    available, wanted = capacity * up, state.backlog / step_s + rate_per_s * rest
    blocked = np.zeros(fleet.shape)
    if fleet.in_bursts.any():
        fire(fleet, state, step_s)
        blocked = find_blocked(fleet, state, available, step_s)
        available, wanted = available * (1.0 - blocked), wanted + state.fired / step_s
    emit = fleet.network.allocate(wanted, available)
    arrived, emitted = rate_per_s * rest * step_s, np.where(fleet.in_bursts, 0.0, emit) * step_s
    backlog = np.maximum(state.backlog + arrived - emitted, 0.0)
    room = np.where(up > 0.0, fleet.compute_room(state.parallelism), 0.0)
    filling = fill(
        fleet.network,
        room,
        state.buffered,
        np.where(fleet.is_source, backlog, 0.0),
        wanted=wanted,
        emitted=emit,
        available=available,
        step_s=step_s,
    )
    load = fleet.network.compute_load(emit)
    held_up = fleet.network.find_backpressured(wanted, emit, load, available) & filling.is_full[:, None]
    load = np.where(filling.above, fleet.network.compute_load(filling.taken), load)
    through = np.where(fleet.in_bursts, emit, load)
    moved = emitted + filling.buffered - state.buffered
    _take_checkpoints(fleet, state, np.where(fleet.in_bursts, load * step_s - emit * step_s, moved), step_s)
    _gather(fleet, state, load * step_s, emit * step_s)
    state.due_records += arrived
    state.emitted += emitted
    state.backlog, state.buffered = backlog, filling.buffered
    state.transit_s = np.divide(filling.buffered, emit, out=np.zeros_like(emit), where=emit > 0.0).max(axis=1)
    state.records_in += load * fleet.counted_in * step_s
    state.records_out += through * fleet.output_ratio * step_s
    state.records_taken += load * step_s
    decay = np.exp(-step_s / fleet.retention_s)
    level = np.where(fleet.in_bursts, 0.0, emit).sum(axis=1) * fleet.bytes_per_record * fleet.retention_s
    state.state_bytes = state.state_bytes * decay + level * (1.0 - decay)
    state.time_s = end
    working = np.divide(load, capacity, out=np.zeros_like(load), where=capacity > 0.0)
    waiting = np.maximum(np.where(fleet.present, up - working, 0.0), 0.0)
    backpressured = np.where(held_up, waiting, np.minimum(blocked, waiting))
    idle = waiting - backpressured
    busy, idle = np.where(fleet.waits_in_poll, working + idle, working), np.where(fleet.waits_in_poll, 0.0, idle)
    state.busy_s += busy * step_s
    state.backpressured_s += backpressured * step_s
    state.idle_s += idle * step_s
    return StepFlow(load, through, capacity, working, busy, backpressured, idle)
