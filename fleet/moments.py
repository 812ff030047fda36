"""When anything of the fleet was last written down."""

from __future__ import annotations

from fleet.facts import FleetStatus


def find_newest(facts: FleetStatus) -> float | None:
    """Return when anything of the fleet was last written down, epoch seconds; None for an empty lake."""
    times = [one.plan_as_of_s for one in facts.clusters]
    times += [one.last_decision.at_s for one in facts.jobs if one.last_decision is not None]
    return max((at_s for at_s in times if at_s is not None), default=None)
