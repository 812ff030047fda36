"""Rows that Phoebe learns from; plain values, so that a memory can hold them."""

from __future__ import annotations

from dataclasses import dataclass

from models.policies.observations import Latency

MIN_CAPACITIES = 3
"""A capacity model needs so many profiled scale-outs."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Means over one window of one deployment.

    Attributes:
        scale_out: workers.
        throughput_per_s: T_avg, records/s.
        latency_ms: L_avg, mean of the latency.
        latency: what latency that is.
    """

    scale_out: int
    throughput_per_s: float
    latency_ms: float
    latency: Latency = Latency.END_TO_END


@dataclass(frozen=True, slots=True)
class CapacityPoint:
    """T_max of one scale-out, records/s."""

    scale_out: int
    capacity_per_s: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Result of the profiling phase.

    Attributes:
        rows: latencies; those of saturated deployments are in it.
        capacity: T_max under permanent backlog.
    """

    rows: tuple[Measurement, ...] = ()
    capacity: tuple[CapacityPoint, ...] = ()

    @property
    def capacities(self) -> tuple[list[int], list[float]]:
        """Scale-outs and their T_max, records/s."""
        return [point.scale_out for point in self.capacity], [point.capacity_per_s for point in self.capacity]
