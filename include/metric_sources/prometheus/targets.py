"""What one process tells of one subtask, or of one job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from include.metric_sources.prometheus.client import Floats


@dataclass(slots=True)
class Target:
    """What one process tells of one subtask, or of one job.

    Attributes:
        labels: without those of an operator.
        times_s: (steps,) when the sample of each step was scraped, NaN without one.
        values: metric -> (steps,).
    """

    labels: Mapping[str, str]
    times_s: Floats
    values: dict[str, Floats] = field(default_factory=dict)

    def steps(self, part: slice) -> Target | None:
        """Return some of the steps; None when they hold no sample."""
        times = self.times_s[part]
        if not np.isfinite(times).any():
            return None
        return Target(self.labels, times, {name: values[part] for name, values in self.values.items()})
