"""Lower bounds of resource requirements: Flink's own are 1; any other a person has set, and it is kept."""

from __future__ import annotations

from models.control.state import JobHistory, ObservedJob, Parallelism

FLINKS_OWN = 1


def is_lower_changed(history: JobHistory, observed: ObservedJob) -> bool:
    """Whether somebody has changed a lower bound; of bounds that nobody has noted those count that are not Flink's."""
    reported, known = observed.lower_bounds, history.known_lower or {}
    if reported is None:
        return False
    return any(reported.get(one, FLINKS_OWN) != known.get(one, FLINKS_OWN) for one in {*reported, *known})


def raise_to_lower(target: Parallelism, observed: ObservedJob) -> dict[str, int]:
    """Return a target with no vertex below its lower bound: Flink refuses such a request."""
    lower = observed.lower_bounds or {}
    return {vertex: max(count, lower.get(vertex, FLINKS_OWN)) for vertex, count in target.items()}
