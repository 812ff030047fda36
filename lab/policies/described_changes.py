"""A change of configuration in words."""

from __future__ import annotations

from collections.abc import Mapping

from models.policies.immediate_change import clip_to_limits
from models.policies.protocol import Situation


def describe_changes(situation: Situation, wanted: Mapping[str, float]) -> str:
    """Return the changes to a configuration as text: "map 2 -> 4, sink 1 -> 2"."""
    pairs = zip(situation.graph.names, clip_to_limits(situation, wanted).tolist(), strict=True)
    return ", ".join(
        f"{name} {situation.parallelism[name]} -> {count}"
        for name, count in pairs
        if count != situation.parallelism[name]
    )
