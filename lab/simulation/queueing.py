"""How records flow through the operators of jobs at one time.

Buffers between operators hold about a second of records in Flink, which is short against a step of simulation.  So
records wait only at the sources, and an operator that cannot keep up slows the sources above it within the same step
(backpressure).

| symbol | meaning |
| --- | --- |
| N | rows: different jobs, or states of the same job |
| O | operators |
| S | sources; where jobs differ, a column for every operator, of which those of sources are not zero |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats

NEGLIGIBLE = 1e-9
"""A share of a capacity, or of a rate, that counts as nothing."""
_FULL = 1.0 - NEGLIGIBLE
_ROUNDS = 3  # of handing out what one of several sources leaves free
_BUSIEST = 0.97  # waiting is bounded there


@dataclass(frozen=True, slots=True)
class QueueingNetwork:
    """The operators of one job, (O, S), which all rows share, or of N jobs, (N, O, S), one for each row.

    Attributes:
        gain: input records of an operator per record of a source; a source's own is 1.
        below: whether an operator is a source or gets records of it.
        above: (O, O) or (N, O, O) whether an operator is a strict ancestor of another.
        rounds: of handing out capacity; one where no job has two sources.
    """

    gain: Floats
    below: Bools
    above: Bools
    rounds: int

    @classmethod
    def from_gain(cls, gain: Floats, above: Bools) -> QueueingNetwork:
        """Build a network; see the attributes."""
        below = gain > 0.0
        several = below.any(axis=-2).sum(axis=-1).max() > 1
        return cls(gain, below, above, _ROUNDS if several else 1)

    def compute_load(self, rates: Floats) -> Floats:
        """Return the (N, O) input rates that (N, S) source rates cause; Eq. 8 of DS2 along every path."""
        if self.gain.ndim == 2:
            return np.asarray(rates @ self.gain.T)
        return np.asarray(np.matmul(self.gain, rates[..., None])[..., 0])

    def allocate(self, wanted: Floats, capacity: Floats) -> Floats:
        """Return what sources emit, (N, S) records/s: as much as wanted and as the operators below let through.

        Sources that share an overloaded operator are slowed in proportion to what they want (credits are granted per
        channel); what one of them then leaves free is handed out in further rounds.

        Args:
            wanted: (N, S) records/s.
            capacity: (N, O) records/s.
        """
        emitted, rest, free = np.zeros_like(wanted), wanted, capacity
        for _ in range(self.rounds):
            load = self.compute_load(rest)
            share = np.divide(free, load, out=np.ones_like(load), where=load > free)
            emitted = emitted + rest * np.where(self.below, share[..., None], 1.0).min(axis=-2)
            rest = wanted - emitted
            if self.rounds == 1 or not (rest > NEGLIGIBLE * wanted).any():
                break
            free = np.maximum(capacity - self.compute_load(emitted), 0.0)
            full = free <= NEGLIGIBLE * capacity
            rest = np.where((self.below & full[..., None]).any(axis=-2), 0.0, rest)  # nothing passes a full operator
            if not (rest > NEGLIGIBLE * wanted).any():
                break
        return emitted

    def allocator(self, capacity: Floats) -> Callable[[Floats, Floats], Floats]:
        """Return :meth:`allocate` for many steps at the same (N, O) capacity of one job.

        The function takes the (N, S) wanted rates and the (N, 1) shares of the step in which each row runs.  With one
        source, what its slowest operator lets through is the same in every step; with several, only rows that are
        short of capacity need rounds.
        """
        if self.gain.shape[-1] == 1:
            with np.errstate(divide="ignore"):
                highest = (capacity / self.gain[:, 0]).min(axis=1, keepdims=True)
            return lambda wanted, up: np.minimum(wanted, highest * up)

        def allocate_to_short_rows(wanted: Floats, up: Floats) -> Floats:
            available = capacity * up
            short = (self.compute_load(wanted) > available).any(axis=1)
            if not short.any():
                return wanted
            emitted = wanted.copy()
            emitted[short] = self.allocate(wanted[short], available[short])
            return emitted

        return allocate_to_short_rows

    def find_backpressured(self, wanted: Floats, emitted: Floats, load: Floats, capacity: Floats) -> Bools:
        """Return which operators wait for a full operator further down that holds back some source, (N, ..., O).

        Args:
            wanted: (N, ..., S).
            emitted: (N, ..., S), as allocated.
            load: (N, ..., O), as emitted.
            capacity: (N, ..., O).
        """
        held_back = wanted - emitted > NEGLIGIBLE * wanted
        full = (load >= _FULL * capacity) & (load > 0.0)
        holding = full & (self.below & held_back[..., None, :]).any(axis=-1)
        return np.asarray((self.above & holding[..., None, :]).any(axis=-1))


def fetch_wait_s(fetch_delay_s: Floats, busy: Floats) -> Floats:
    """Return (N,) seconds that a record waits at a source without a backlog: grows with the busiest operator.

    A source fetches in batches, and waiting grows as u^2 / (1 - u) like that of a queue with one server.

    Args:
        fetch_delay_s: (N,) or (1,) of an unloaded source.
        busy: (N, O) busy shares.
    """
    u = np.minimum(busy.max(axis=1), _BUSIEST)
    return np.asarray(fetch_delay_s * (1.0 + 0.5 * u * u / (1.0 - u)))
