"""Falls that wait: a lower parallelism is taken after a delay, and then the highest that was wanted meanwhile.

It is rule 11 of the Flink autoscaler, for any candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WantedFall:
    """What was wanted instead of more: epoch seconds, operator -> parallelism."""

    at_s: int
    parallelism: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FallDelay:
    """Falls that were wanted and wait, oldest first."""

    wanted: tuple[WantedFall, ...] = ()


def delay_fall(
    memory: FallDelay, wanted: Mapping[str, int], running: Mapping[str, int], now_s: int, delay_s: int
) -> tuple[Mapping[str, int] | None, FallDelay]:
    """Return what to change to now, None for nothing, and the falls that wait.

    A change that raises any operator is taken at once and drops what waited; the operators that it would lower keep
    their parallelism.  A candidate that wants no change says nothing: some are silent for a while after each wish.

    Args:
        memory: falls that wait.
        wanted: operator -> parallelism.
        running: the same, of the job.
        now_s: epoch seconds.
        delay_s: how long falls wait.
    """
    if dict(wanted) == dict(running):
        return None, memory
    if any(count > running[name] for name, count in wanted.items()):
        retained = wanted if delay_s <= 0 else {name: max(count, running[name]) for name, count in wanted.items()}
        return retained, FallDelay()
    falls = (*memory.wanted, WantedFall(now_s, dict(wanted)))
    if now_s - falls[0].at_s < delay_s:
        return None, FallDelay(falls)
    recent = [fall for fall in falls if fall.at_s >= now_s - delay_s]
    highest = {name: max(fall.parallelism.get(name, 0) for fall in recent) for name in wanted}
    target = {name: min(count, running[name]) for name, count in highest.items()}
    if target == dict(running):
        return None, FallDelay(tuple(recent))
    return target, FallDelay()
