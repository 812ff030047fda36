"""Operators that emit in bursts: what they gather between two bursts, and how a burst holds them up.

A window gathers its output and emits it at once when it fires.  What it holds is measured here in records that it took
in; the shares of its edges and its counter of records out apply when they are emitted.
"""

from __future__ import annotations

import numpy as np

from lab.simulation.fleet import Fleet
from lab.simulation.state import FleetState
from models.arrays import Floats

_SLACK = 1e-9  # of a period: rounding of the time


def fire(fleet: Fleet, state: FleetState, step_s: float) -> None:
    """Let the windows fire whose period ends within the step that comes; what they hold by now is what they emit."""
    period = fleet.burst_s
    with np.errstate(invalid="ignore"):
        since = state.time_s / period
        fires = fleet.in_bursts & ((np.ceil(since - _SLACK) * period) < state.time_s + step_s * (1.0 - _SLACK))
    state.fired += np.where(fires, state.held, 0.0)
    state.held[fires] = 0.0


def find_blocked(fleet: Fleet, state: FleetState, available: Floats, step_s: float) -> Floats:
    """Return (J, O) the share of the step in which an operator emits a burst and so takes nothing in.

    Args:
        fleet: the jobs.
        state: with what was fired.
        available: (J, O) capacity of the step, records/s.
        step_s: its length.
    """
    gain = fleet.network.gain
    with np.errstate(divide="ignore", invalid="ignore"):
        highest = np.where(gain > 0.0, available[..., None] / gain, np.inf).min(axis=1)
        needed_s = np.where(state.fired > 0.0, state.fired / highest, 0.0)
    return np.asarray(np.minimum(needed_s / step_s, 1.0))
