"""What the windows of a job have told, as it is kept between evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from include.domain.graph import JobGraph
from models.policies.observations import Observations
from models.policies.tuning import KEEP
from models.policies.tuning.capacity_history import History
from models.policies.tuning.reading import learn_histories, select_new_windows


@dataclass(frozen=True, slots=True)
class WindowMemory:
    """What the windows have told.

    Attributes:
        seen_until_s: end of the last window that was learnt from.
        histories: operator -> what was observed of it.
        shares: operator -> its input per record of all sources together, as last measured.
    """

    seen_until_s: float | None = None
    histories: Mapping[str, History] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)


MemoryT = TypeVar("MemoryT", bound=WindowMemory)
"""This, or with what else a policy keeps."""


def learn_windows(memory: MemoryT, graph: JobGraph, observations: Observations) -> MemoryT:
    """Return the memory after windows that it had not read yet."""
    fresh = select_new_windows(observations, memory.seen_until_s)
    if not len(fresh):
        return memory
    until_s = float(fresh.window_start_s[-1] + fresh.window_s)
    return replace(memory, seen_until_s=until_s, histories=learn_histories(memory.histories, graph, fresh, KEEP))
