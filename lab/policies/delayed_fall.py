"""Scale-downs that wait, for policies whose papers let them happen at once: a stated deviation, off by default.

An operator falls no lower than the highest parallelism that was recommended for it within the delay, as in Kubernetes'
pod autoscaler (stabilisation window) and in rule 11 of the Flink autoscaler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Recommended:
    """What was recommended at a time, epoch seconds; operator -> parallelism."""

    at_s: float
    parallelism: Mapping[str, int] = field(default_factory=dict)


Recent = tuple[Recommended, ...]


def delay_fall(
    recent: Recent, now_s: float, running: Mapping[str, int], wanted: Mapping[str, int], delay_s: float
) -> tuple[dict[str, int], Recent]:
    """Return what is left of a recommendation, and the recommendations to remember.

    Args:
        recent: the earlier ones, oldest first.
        now_s: epoch seconds.
        running: operator -> parallelism, which counts as recommended until the first recommendation.
        wanted: operator -> parallelism that is recommended now.
        delay_s: 0 to let every fall through.
    """
    if delay_s <= 0:
        return dict(wanted), ()
    before = recent or (Recommended(now_s, dict(running)),)
    retained = tuple(one for one in before if one.at_s > now_s - delay_s)
    after = (*retained, Recommended(now_s, dict(wanted)))
    highest = {name: max(one.parallelism.get(name, 0) for one in after) for name in wanted}
    return {name: max(count, min(running.get(name, count), highest[name])) for name, count in wanted.items()}, after
