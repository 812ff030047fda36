"""When Phoebe's controller looks at a job: not until an evaluation interval after the last change or failure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from models.policies.observations import Observations
from models.policies.phoebe.options import EVALUATION_INTERVAL_S


@dataclass(frozen=True, slots=True)
class Uptime:
    """What is remembered of a job's interruptions.

    Attributes:
        seen_until_s: end of the last window that was looked at; None before the first.
        interrupted_s: when the last interruption began; None when none is known.
        interrupted: whether the last window that was looked at was part of one.
    """

    seen_until_s: int | None = None
    interrupted_s: int | None = None
    interrupted: bool = False

    def updated(self, observations: Observations) -> Uptime:
        """Return the memory after the windows that it had not seen."""
        new = observations if self.seen_until_s is None else observations.since(self.seen_until_s)
        known = self
        for start, disturbed in zip(new.window_start_s.tolist(), new.disturbed.tolist(), strict=True):
            began = start if disturbed and not known.interrupted else known.interrupted_s
            # a change that was asked for shows in the windows after it, and is no further interruption
            if known.interrupted_s is not None and began is not None:
                began = max(began, known.interrupted_s)
            known = replace(
                known, seen_until_s=start + observations.window_s, interrupted_s=began, interrupted=bool(disturbed)
            )
        return known

    def changed(self, at_s: int) -> Uptime:
        """Return the memory after a change of parallelism at a time."""
        return replace(self, interrupted_s=at_s, interrupted=True)

    def settled(self, at_s: int, interval_s: int = EVALUATION_INTERVAL_S) -> bool:
        """Return whether the job has run undisturbed for an evaluation interval.

        As in the prototype it counts from the beginning of the interruption (the paper: from the job's restart).
        """
        return self.interrupted_s is None or at_s - self.interrupted_s >= interval_s
