"""Turns of clusters: one at a time of each, and none waits for another."""

from __future__ import annotations

import threading
from collections import Counter

from controller.tick import ClusterTurns


def test_a_cluster_is_idle_when_its_turn_has_ended() -> None:
    turns, gate = ClusterTurns(2), threading.Event()

    def wait() -> tuple[Counter[str], str | None]:
        gate.wait(20.0)
        return Counter({"rescale plan": 1}), None

    assert turns.idle(["slow", "quick"]) == ["slow", "quick"]
    turns.begin("slow", wait)
    assert turns.idle(["slow", "quick"]) == ["quick"]
    assert turns.take_ended(0.0)[1].keys() == {"slow"}
    assert turns.idle(["slow"]) == []
    gate.set()
    assert turns.take_ended(None) == (Counter({"rescale plan": 1}), {})
    assert turns.idle(["slow", "quick"]) == ["slow", "quick"]
    turns.close()
