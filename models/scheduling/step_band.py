"""The band of a planned step: what may be measured when it is due, for it to stay as it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from models.scheduling.figures import format_rate


@dataclass(frozen=True, slots=True)
class StepBand:
    """What may be measured when a step is due, for it to stay as it is.

    Attributes:
        load_low_per_s, load_high_per_s: load expected next, all sources together; 0 and infinite where it has no end.
        age_low_s, age_high_s: age of the backlog, as a policy counts it.
    """

    load_low_per_s: float
    load_high_per_s: float
    age_low_s: float
    age_high_s: float

    def describe(self) -> str:
        """Return the band as the reason of its step says it."""
        text = f"as planned while the load is {self.describe_loads()}"
        if self.age_low_s > 0 or math.isfinite(self.age_high_s):
            text += f" and the backlog {self.describe_ages()}"
        return text

    def describe_loads(self) -> str:
        """Return the loads: "930k to 1.1M/s"."""
        low, high = format_rate(self.load_low_per_s), format_rate(self.load_high_per_s)
        if math.isinf(self.load_high_per_s):
            return f"at least {low}/s"
        return f"{low} to {high}/s" if self.load_low_per_s > 0 else f"at most {high}/s"

    def describe_ages(self) -> str:
        """Return the ages of the backlog: "at most 23 s old"."""
        low, high = f"{self.age_low_s:.0f}", f"{self.age_high_s:.0f}"
        if math.isinf(self.age_high_s):
            return f"at least {low} s old"
        return f"{low} to {high} s old" if self.age_low_s > 0 else f"at most {high} s old"
