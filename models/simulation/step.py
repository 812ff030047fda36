"""One step of a simulated fleet: what its sources emit, and what Flink would report about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.simulation.fleet import Fleet
from models.simulation.state import FleetState, compute_checkpoint_duration


@dataclass(frozen=True, slots=True)
class Flow:
    """What went through the fleet in one step, all (J, O).

    Attributes:
        in_per_s: records that each operator took (a source: emitted), mean over the step.
        capacity_per_s: capacity at the step's noise, while the job runs.
        busy, backpressured, idle: shares of the step; they add up to the share in which the job ran.
    """

    in_per_s: Floats
    capacity_per_s: Floats
    busy: Floats
    backpressured: Floats
    idle: Floats


def _take_checkpoints(fleet: Fleet, state: FleetState, emitted: Floats, step_s: float) -> None:
    """Complete and trigger checkpoints that fall into the step; positions are interpolated within it."""
    end = state.time_s + step_s
    _complete_checkpoints(state, end)
    due = (state.trigger_next < end) & np.isinf(state.pending_done)
    if due.any():
        share = np.clip((state.trigger_next - state.time_s) / step_s, 0.0, 1.0)[:, None]
        position = state.emitted - state.replayed + share * emitted
        state.pending_position = np.where(due[:, None], position, state.pending_position)
        state.pending_trigger = np.where(due, state.trigger_next, state.pending_trigger)
        duration = compute_checkpoint_duration(fleet, state)
        state.pending_done = np.where(due, state.trigger_next + duration, state.pending_done)
        state.trigger_next = np.where(due, state.trigger_next + fleet.interval_s, state.trigger_next)
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
    backlog_per_s = np.divide(state.backlog, span_s, out=np.zeros_like(state.backlog), where=span_s > 0.0)
    emit = fleet.network.allocate(backlog_per_s + rate_per_s, fleet.capacity(state.parallelism) * noise)
    arrived, emitted = rate_per_s * span_s, emit * span_s
    state.due_records += arrived
    state.emitted += emitted
    state.backlog = np.maximum(state.backlog + arrived - emitted, 0.0)


def advance(fleet: Fleet, state: FleetState, rate_per_s: Floats, noise: Floats, step_s: float) -> Flow:
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
    wanted = state.backlog / step_s + rate_per_s * rest
    emit = fleet.network.allocate(wanted, capacity * up)
    load = fleet.network.compute_load(emit)
    arrived, emitted = rate_per_s * rest * step_s, emit * step_s
    _take_checkpoints(fleet, state, emitted, step_s)
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
    held_up = fleet.network.find_backpressured(wanted, emit, load, capacity * up)
    backpressured = np.where(held_up, waiting, 0.0)
    idle = waiting - backpressured
    state.busy_s += busy * step_s
    state.backpressured_s += backpressured * step_s
    state.idle_s += idle * step_s
    return Flow(load, capacity, busy, backpressured, idle)
