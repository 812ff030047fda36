"""The CPU rule of AWS' Managed Service for Apache Flink: doubles a busy job's parallelism, halves an idle one's.

Source: its documentation of automatic scaling: 75% CPU or more for 15 minutes doubles, below 10% for 6 hours halves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.replay.rivals.rival_options import CpuStepsOptions
from lab.policies.baselines.reactive import estimate_processor_use
from lab.replay.tick_snapshot import TickSnapshot

_OBSERVED_H = 0.25


@dataclass(frozen=True, slots=True)
class StepsMemory:
    """Since when the CPU use is high, and low, epoch seconds; None while it is not."""

    high_since_s: int | None = None
    low_since_s: int | None = None


class CpuSteps:
    """Doubles and halves.

    Deviation: CPU use is the busy time of a worker's subtasks, at most one core, as in the reactive mode's rule.

    Args:
        options: the settings.
    """

    def __init__(self, options: CpuStepsOptions | None = None) -> None:
        self._options = options or CpuStepsOptions()

    def first_memory(self) -> StepsMemory:
        """Return the memory before the first tick."""
        return StepsMemory()

    def tick(self, snapshot: TickSnapshot, memory: StepsMemory) -> tuple[Mapping[str, int] | None, StepsMemory]:
        """Return twice or half the parallelism, or None."""
        observations = snapshot.observations(_OBSERVED_H)
        use = estimate_processor_use(observations, observations.window_s)
        if not math.isfinite(use) or not snapshot.is_up:
            return None, StepsMemory()
        options, since_s = self._options, snapshot.now_s - observations.window_s
        known = StepsMemory(
            _continue(memory.high_since_s, since_s, use >= options.high),
            _continue(memory.low_since_s, since_s, use < options.low),
        )
        current = max(snapshot.running.values())
        if known.high_since_s is not None and snapshot.now_s - known.high_since_s >= options.high_for_s:
            wanted, after = min(2 * current, snapshot.slots_max), replace(known, high_since_s=None)
        elif known.low_since_s is not None and snapshot.now_s - known.low_since_s >= options.low_for_s:
            wanted, after = max(current // 2, 1), replace(known, low_since_s=None)
        else:
            return None, known
        return dict.fromkeys(snapshot.graph.names, wanted), after


def _continue(since_s: int | None, now_s: int, holds: bool) -> int | None:
    if not holds:
        return None
    return now_s if since_s is None else since_s
