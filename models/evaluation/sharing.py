"""What the sources of one job emit where its operators are short of capacity, for many contenders at once."""

from __future__ import annotations

import numpy as np

from models.simulation.spec import BoolArray, FloatArray

NOTHING_FREE = 1e-9
"""A share of a capacity, or of what is wanted, that counts as nothing."""


def shared_out(gain: FloatArray, below: BoolArray, want: FloatArray, capacity: FloatArray, rounds: int) -> FloatArray:
    """Return what sources emit where operators are short of capacity, (n, S) records/s.

    The rounds of :func:`models.simulation.step.allocate`, for rows that share one job.

    Args:
        gain: (O, S) input of an operator per record of a source.
        below: (O, S) whether an operator gets records of a source, or is it.
        want: (n, S).
        capacity: (n, O).
        rounds: of handing out what others leave free.
    """
    load = want @ gain.T
    share = np.divide(capacity, load, out=np.ones(load.shape), where=load > capacity)
    common = share[:, below.all(axis=1)].min(axis=1, initial=1.0)
    if (common <= share.min(axis=1)).all():
        # What is full then lies below every source, so nothing is left to be handed out.
        return np.asarray(want * common[:, None])
    emit, more, free = np.zeros(want.shape), want, capacity
    for _ in range(rounds):
        load = more @ gain.T
        share = np.ones(load.shape)
        np.divide(free, load, out=share, where=load > free)
        for source, mine in enumerate(below.T):
            emit[:, source] += more[:, source] * share[:, mine].min(axis=1)
        more = want - emit
        free = np.maximum(capacity - emit @ gain.T, 0.0)
        full = free <= NOTHING_FREE * capacity
        # a source above a full operator asks for nothing more
        blocked = np.stack([full[:, mine].any(axis=1) for mine in below.T], axis=1)
        more = np.where(blocked, 0.0, more)
        if not (more > NOTHING_FREE * want).any():
            break
    return emit
