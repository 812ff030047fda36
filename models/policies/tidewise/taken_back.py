"""Falls that were a loss within the hour: after one the job has what the high load of the last hours needs.

A load that comes and goes within the hour is followed by no size: each fall costs two rescales, and late minutes when
the load is back.  What a fall saves until then is held against that.  After a loss falls pause for an hour, after each
further one for twice as long, for a day at most; a fall that lasts an hour without a loss ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from include.utc import DAY_S, HOUR_S, MINUTE_S
from models.programme.choice import ProgrammeDecision
from models.programme.problem import CostTerms
from models.scheduling.figures import format_clock

_LOSS: Final = 8.0  # in prices of a rescale: less is the ordinary price of being wrong by a little


@dataclass(frozen=True, slots=True)
class ScaleDownRecord:
    """What became of a job's falls.

    Attributes:
        seen_s, slots: when the job was last evaluated, and what it ran with; 0 before the first time.
        slots_before: of the last fall; 0 once it is over.
        fell_s: when it was decided at the latest.
        saved: slots since then at their price, less late minutes at theirs, and what falls before it have lost.
        pause_s, until_s: how long falls pause, and until when; 0 after one that has lasted.
    """

    seen_s: int = 0
    slots: int = 0
    slots_before: int = 0
    fell_s: int = 0
    saved: float = 0.0
    pause_s: int = 0
    until_s: int = 0

    def follow(self, choice: ProgrammeDecision, terms: CostTerms, now_s: int) -> ScaleDownRecord:
        """Return it after one more evaluation, whose choice tells what the job runs with and how late it is."""
        slots, passed_min = choice.slots_from, (now_s - self.seen_s) / MINUTE_S
        after = replace(self, seen_s=now_s, slots=slots)
        if now_s < self.until_s:
            return after
        before = self.slots_before or (self.slots if slots < self.slots else 0)
        if not before:
            return after
        fell_s = self.fell_s if self.slots_before else self.seen_s
        is_late = choice.age_s > terms.late_after_s
        lower = min(slots, self.slots)  # between the two evaluations
        saved = self.saved + (terms.slot_price * (before - lower) - terms.late_price * is_late) * passed_min
        remaining_min = choice.age_s / MINUTE_S * is_late  # until it is worked off
        left = saved - 2 * terms.rescale_price - terms.late_price * remaining_min
        is_back, ended = slots >= before, replace(after, slots_before=0, saved=0.0)
        if (is_late or is_back) and left < -_LOSS * terms.rescale_price:
            pause_s = min(max(2 * self.pause_s, HOUR_S), DAY_S)
            return replace(ended, pause_s=pause_s, until_s=now_s + pause_s)
        if now_s - fell_s >= HOUR_S:
            return replace(ended, pause_s=0)
        if is_back:
            return replace(ended, saved=min(left, 0.0))
        return replace(after, slots_before=before, fell_s=fell_s, saved=saved)

    def describe(self, now_s: int) -> str:
        """Return why slots are not given up, to follow a reason; empty while falls are tried."""
        if now_s >= self.until_s:
            return ""
        until = format_clock(self.until_s, now_s)
        return f"; the last fall was a loss, so the high load of 6 h is carried until {until}"
