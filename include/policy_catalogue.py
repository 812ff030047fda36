"""Which policies learn before they decide: named here, so that a DAG can ask without Spark and without the policies."""

from __future__ import annotations

from collections.abc import Collection

from include.settings import Planner

# By night, from the history in Delta: those with a method ``learn``.
NIGHTLY = frozenset({"mdp", "rl_plus", "rl", "rl_decentralised"})
# From a profiling phase: those whose memory holds a profile.
PROFILED = frozenset({"phoebe", "twres"})


def any_of(options: Planner, policies: Collection[str]) -> bool:
    """Whether some job may have one of the policies."""
    return not options.policies_in_use.isdisjoint(policies)
