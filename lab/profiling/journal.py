"""Measurements of a profiling phase, step by step, as they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lab.profiling.profiling import ProfilingCluster
from lab.profiling.rows import Measurement
from models.policies.observations import Latency


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One deployment in one step.

    Attributes:
        kind: a step of the replay, or the run under backlog.
        step: of the replay, from 0; 0 under backlog.
        scale_out: workers.
        rate_per_s: replayed over all sources; None under backlog.
        throughput_per_s: measured.
        latency_ms: measured; None under backlog.
        latency: what latency that is; None under backlog.
    """

    kind: Literal["step", "capacity"]
    step: int
    scale_out: int
    rate_per_s: float | None
    throughput_per_s: float
    latency_ms: float | None
    latency: Latency | None = None


class Journal:
    """A profiling cluster that passes every call to another one and records its measurements.

    Args:
        cluster: that runs the deployments.
    """

    def __init__(self, cluster: ProfilingCluster) -> None:
        self._cluster = cluster
        self._steps = 0
        self.entries: list[JournalEntry] = []

    def deploy(self, scale_outs: Sequence[int]) -> None:
        """See :class:`ProfilingCluster`."""
        self._cluster.deploy(scale_outs)

    def replay(self, rate_per_s: float, settle_s: int, window_s: int) -> Mapping[int, Measurement]:
        """See :class:`ProfilingCluster`."""
        measured = self._cluster.replay(rate_per_s, settle_s, window_s)
        self.entries += [
            JournalEntry("step", self._steps, scale_out, rate_per_s, row.throughput_per_s, row.latency_ms, row.latency)
            for scale_out, row in sorted(measured.items())
        ]
        self._steps += 1
        return measured

    def stop(self, scale_out: int) -> None:
        """See :class:`ProfilingCluster`."""
        self._cluster.stop(scale_out)

    def catch_up(self, scale_outs: Sequence[int], settle_s: int, window_s: int) -> Mapping[int, float]:
        """See :class:`ProfilingCluster`."""
        result = self._cluster.catch_up(scale_outs, settle_s, window_s)
        self.entries += [
            JournalEntry("capacity", 0, scale_out, None, throughput, None)
            for scale_out, throughput in sorted(result.items())
        ]
        return result

    def close(self) -> None:
        """See :class:`ProfilingCluster`."""
        self._cluster.close()
