"""When the jobs of a history are polled: regularly, and more often while they recover."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.simulation.fleet import Fleet
from lab.simulation.samples import SampledMetrics
from models.arrays import Bools

BEHIND_S = 5.0
"""A job whose backlog is more than so many seconds of what it takes in recovers still."""
LONGEST_S = 3600.0
"""After a stop; a job that cannot keep up is not recovering."""


@dataclass(frozen=True, slots=True)
class PollSelection:
    """Which of a job's samples are polled.

    Attributes:
        samples_per_poll: of an hour's samples the last of every so many; 1: all.
        recovery_s: each sample from a job's stop until so long after it runs again, and until it has caught up; 0: none
            besides the regular ones.
    """

    samples_per_poll: int = 1
    recovery_s: float = 0.0

    def list_regular(self, samples: range) -> range:
        """Return the regular polls among the samples of an hour."""
        return samples[self.samples_per_poll - 1 :: self.samples_per_poll]

    def find_recovering(self, fleet: Fleet, samples: SampledMetrics) -> Bools:
        """Return (K, J): which samples show a job that recovers."""
        at_s = samples.at_s[:, None]
        rate_per_s, pending = (np.where(fleet.is_source, of, 0.0) for of in (samples.taken_per_s, samples.pending))
        is_behind = (pending > BEHIND_S * rate_per_s).any(axis=2) & (at_s <= samples.down_until + LONGEST_S)
        is_behind[1:] |= is_behind[:-1]  # also the sample that shows it caught up
        is_near = at_s <= samples.down_until + self.recovery_s
        return np.asarray((self.recovery_s > 0.0) & (at_s >= samples.down_from) & (is_near | is_behind))


EVERY_SAMPLE = PollSelection()
