"""Capacity of each scale-out: a line of throughput over utilisation, updated window by window (Welford).

The capacity is the line's value at the desired utilisation: mean(y) + cov(x, y) / var(x) (x* - mean(x)).

Deviation: the paper fits a line per worker and lowers what is desired of each by the skew between them.  Windows hold
the mean of an operator's subtasks, so a scale-out has one line, and skew is in what the busiest operator processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

_LEAST_VARIANCE = 1e-4  # a standard deviation of one hundredth of a core: less tells no slope


@dataclass(frozen=True, slots=True)
class CapacityLine:
    """Running means, variance and covariance of a scale-out.

    Attributes:
        workers: the scale-out.
        count: of windows.
        use, throughput_per_s: means.
        use_squares, products: sums of squared distances of the use, and of products of both distances.
    """

    workers: int
    count: int = 0
    use: float = 0.0
    throughput_per_s: float = 0.0
    use_squares: float = 0.0
    products: float = 0.0

    def add(self, use: float, throughput_per_s: float) -> CapacityLine:
        """Return the line with one more window."""
        count = self.count + 1
        distance = use - self.use
        mean_use = self.use + distance / count
        mean_throughput = self.throughput_per_s + (throughput_per_s - self.throughput_per_s) / count
        return replace(
            self,
            count=count,
            use=mean_use,
            throughput_per_s=mean_throughput,
            use_squares=self.use_squares + distance * (use - mean_use),
            products=self.products + distance * (throughput_per_s - mean_throughput),
        )

    def capacity_per_s(self, desired_use: float) -> float:
        """Return the throughput at a utilisation, records/s; in proportion where windows tell no slope."""
        slope = self.throughput_per_s / self.use
        if self.use_squares > _LEAST_VARIANCE * self.count and self.products > 0:
            slope = self.products / self.use_squares
        return self.throughput_per_s + slope * (desired_use - self.use)


def estimate_capacity(lines: Sequence[CapacityLine], workers: int, desired_use: float) -> float:
    """Return the capacity of a scale-out, records/s: of its own line, else in proportion to the nearest one's.

    Deviation: how the paper reaches scale-outs that never ran was not in the text at hand.

    Args:
        lines: one at least, each with a window at least.
        workers: the scale-out.
        desired_use: at which the lines are read.
    """
    nearest = min(lines, key=lambda line: (abs(line.workers - workers), line.workers))
    return nearest.capacity_per_s(desired_use) * workers / nearest.workers
