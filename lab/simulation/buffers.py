"""Buffers between operators: how many records wait in them, and what shows that.

An operator that cannot keep up is fed until the buffers before it, and before the operators above it, are full; only
then are those held back (backpressure) and records wait at the sources.  Flink's defaults: segments of 32 KiB, for each
channel two of its receiver's and two of its sender's own, and eight more for all channels of a receiver and of a
sender.  A source of 4 subtasks before 2 has 80 segments: 26,214 records of 100 bytes, where 26,000 were measured
(``change_times``).

Symbols as in ``queueing``: N rows, O operators, S sources.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.simulation.queueing import NEGLIGIBLE, QueueingNetwork
from models.arrays import Bools, Floats

SEGMENT_BYTES = 32 * 1024
PER_CHANNEL, FLOATING = 2, 8
_FULL = 0.999


def count_segments(senders: Floats, receivers: Floats, forward: Bools) -> Floats:
    """Return how many segments the exchange between some subtasks has, of both sides; all arrays broadcast."""
    channels = np.where(forward, receivers, senders * receivers)
    sides = np.where(forward, 2 * receivers, senders + receivers)
    return np.asarray(2 * PER_CHANNEL * channels + FLOATING * sides, float)


@dataclass(frozen=True, slots=True)
class BufferLevels:
    """What the buffers of N rows come to in a step.

    Attributes:
        buffered: (N, S) records of sources that wait in buffers at its end.
        taken: (N, S) records/s that sources take in: what is emitted at the operator that limits them, and what is
            added to the buffers.
        above: (N, O) operators above the one that limits: they take in what the sources do.
        is_full: (N,) whether they hold the sources back.
    """

    buffered: Floats
    taken: Floats
    above: Bools
    is_full: Bools


def fill(
    network: QueueingNetwork,
    room: Floats,
    buffered: Floats,
    backlog: Floats,
    *,
    wanted: Floats,
    emitted: Floats,
    available: Floats,
    step_s: float,
) -> BufferLevels:
    """Let sources fill the buffers above the operator of each row that has the least capacity for its load.

    Args:
        network: of the rows.
        room: (N, O) input records that fit before each operator; 0 before sources.
        buffered: (N, S) at the step's beginning.
        backlog: (N, S) records that are not processed at the step's end, those in buffers among them.
        wanted: (N, S) records/s, as of :meth:`QueueingNetwork.allocate`.
        emitted: (N, S) records/s, as allocated.
        available: (N, O) records/s that could be processed.
        step_s: length of the step.
    """
    load = network.compute_load(wanted)
    with np.errstate(divide="ignore", invalid="ignore"):
        use = np.where(load > 0.0, load / available, 0.0)
    limiting = use.argmax(axis=1)
    rows = np.arange(len(load))
    above = network.above[:, limiting].T if network.above.ndim == 2 else network.above[rows, :, limiting]
    feeding = above.copy()
    feeding[rows, limiting] = True
    # What fits before an operator is shared by the sources as its load is.
    fits_s = np.where(feeding, np.divide(room, load, out=np.zeros_like(load), where=load > 0.0), 0.0)
    fits = wanted * (network.below * fits_s[..., None]).sum(axis=-2)
    # The operators above take in no more than they can; before an overloaded source nothing is buffered.
    most = wanted / np.maximum(np.where(above, use, 0.0).max(axis=1, keepdims=True), NEGLIGIBLE)
    added = np.maximum(most - emitted, 0.0) * step_s
    least = np.clip(buffered - emitted * step_s, 0.0, backlog)
    now = np.maximum(np.minimum(np.minimum(fits, backlog), buffered + added), least)
    is_full = (now >= _FULL * fits).all(axis=1)
    return BufferLevels(now, emitted + (now - buffered) / step_s, above, is_full)
