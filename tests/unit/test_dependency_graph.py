"""What a run of ingestion makes: each value once, after those that it needs, side by side."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from graphlib import CycleError
from inspect import signature

import pytest

from include.tables import INGESTED
from spark_jobs.ingest.dependency_graph import Node, run_graph
from spark_jobs.ingest.frames import FRAMES, TABLES


def run(*nodes: Node, **given: object) -> dict[str, object]:
    with ThreadPoolExecutor(4) as pool:
        return run_graph(nodes, given, pool)


def test_each_value_is_made_once_from_those_it_needs():
    calls: list[int] = []

    def double(number: int) -> int:
        calls.append(number)
        return 2 * number

    nodes = [
        Node("sum", lambda a, b: a + b, ("twice", "four_times")),
        Node("four_times", double, ("twice",)),
        Node("twice", double, ("one",)),
    ]
    assert run(*nodes, one=1) == {"one": 1, "twice": 2, "four_times": 4, "sum": 6}
    assert calls == [1, 2]


def test_values_that_do_not_need_each_other_are_made_side_by_side():
    meeting = threading.Barrier(2, timeout=10)  # neither gets past it alone
    made = run(Node("a", meeting.wait), Node("b", meeting.wait))
    assert sorted(made.values()) == [0, 1]


def test_a_failure_comes_out_and_what_needs_the_value_is_left_out():
    began: list[str] = []

    def fail() -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        run(Node("bad", fail), Node("after", began.append, ("bad",)))
    assert began == []


def test_a_value_that_nothing_makes_is_named():
    with pytest.raises(KeyError, match="no node makes c, d"):
        run(Node("a", print, ("d", "b", "c")), b=1)


def test_a_circle_is_refused():
    with pytest.raises(CycleError):
        run(Node("a", print, ("b",)), Node("b", print, ("a",)))


def test_the_frames_of_ingestion_fit_together_and_every_table_is_written():
    """Run with functions that only note what they are given: no value is missing, twice there or in a circle."""
    nodes = [*FRAMES, *(table_slice.node for table_slice in TABLES)]
    names = [node.name for node in nodes]
    assert len(set(names)) == len(names)
    noted = [Node(node.name, lambda *needs, own=node.name: (own, len(needs)), node.needs) for node in nodes]
    made = run(*noted, lake="lake", settings="settings", interval="interval", is_forced=False)
    assert made.keys() == {*names, "lake", "settings", "interval", "is_forced"}
    assert sorted(table_slice.table.name for table_slice in TABLES) == sorted(table.name for table in INGESTED)
    for node in nodes:
        signature(node.make).bind(*node.needs)  # as many as the function takes
    # Every value is used: by another, by a table, or in the summary.
    used = {need for node in nodes for need in node.needs} | {"counts", "hours", "refusals"}
    assert {node.name for node in FRAMES} - used == set()
