"""Which edges of a graph are counted together: Flink sums what a vertex sends, and what it takes, over its edges."""

from __future__ import annotations

from collections.abc import Sequence

Feeders = Sequence[Sequence[int]]
"""Of each operator the positions of those that feed it, which come before it."""


def group_edges(feeders: Feeders) -> list[tuple[list[int], list[int]]]:
    """Return senders and takers of which no edge leads to those of another group: what all send is what all take.

    >>> group_edges([[], [0], [0], [2], [1, 2]])
    [([0], [1, 2]), ([1, 2], [3, 4])]
    """
    groups: list[tuple[set[int], set[int]]] = []
    for taker, others in enumerate(feeders):
        if not others:
            continue
        senders, takers = set(others), {taker}
        for group in [one for one in groups if one[0] & senders]:
            groups.remove(group)
            senders, takers = senders | group[0], takers | group[1]
        groups.append((senders, takers))
    return [(sorted(senders), sorted(takers)) for senders, takers in groups]
