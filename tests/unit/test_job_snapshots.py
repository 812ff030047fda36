"""What a job's polls have to show before it is evaluated, and which windows and partitions the evaluation is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controller.view.job_view import FRESH_TURNS, JobView, NotObservedError, name_step, take_snapshot
from include.domain.graph import JobGraph, Operator
from include.settings import Cluster
from models.policies.observations import Observations
from tests.unit.test_evaluation import GRAPH, NOW_S, RUNNING, SETTINGS, seen, view, windows

OTHER = {"another": 1, "map": 4}


def graph(partitions: int | None) -> JobGraph:
    return JobGraph.from_operators(
        [Operator("source", (), 128, partitions=partitions), Operator("map", ("source",), 128)]
    )


@pytest.mark.parametrize(
    ("known", "why"),
    [
        ({}, "no poll of it lately"),
        (
            {"seen": seen(NOW_S - FRESH_TURNS * SETTINGS.planner.timing.apply_every_s - 1), "graph": GRAPH},
            "no poll of it lately",
        ),
        ({"seen": seen(graph=None)}, "its graph is not known"),
        ({"seen": seen(running=OTHER)}, "its operators are not those of its graph"),
        (
            {"seen": seen(running=OTHER, state="RESTARTING", restarting=True)},
            "its operators are not those of its graph",
        ),
        ({"seen": seen(running={}, state="CREATED", restarting=True)}, "its operators are not those of its graph"),
    ],
)
def test_a_job_of_which_too_little_is_known_is_not_evaluated(known: dict[str, Any], why: str) -> None:
    with pytest.raises(NotObservedError, match=f"^{why}$"):
        take_snapshot(view(**known), SETTINGS, NOW_S)


@pytest.mark.parametrize("running", [{}, OTHER])
def test_a_job_that_has_never_run_is_asked_for_no_operators(running: dict[str, int]) -> None:
    made = take_snapshot(view(seen=seen(running=running, state="INITIALIZING")), SETTINGS, NOW_S)
    assert (made.up, made.restarting, made.running) == (False, False, running)


@pytest.mark.parametrize(("state", "restarting"), [("RUNNING", False), ("RESTARTING", True)])
def test_a_job_that_runs_or_is_brought_back_is_shown_with_its_windows(state: str, restarting: bool) -> None:
    known = windows(500.0)
    made = take_snapshot(view(seen=seen(state=state, restarting=restarting), observations=known), SETTINGS, NOW_S)
    assert (made.up, made.restarting, made.running) == (not restarting, restarting, RUNNING)
    assert made.observations is known


def test_what_the_cluster_has_taken_for_slots_goes_before_what_the_settings_say() -> None:
    assumed, learnt = (take_snapshot(view(seen=seen(), slots_wait_s=one), SETTINGS, NOW_S) for one in (None, 80.0))
    assert assumed.options == SETTINGS.planner
    assert learnt.options.timing.slots_wait_s == 80.0


@pytest.mark.parametrize("count", [None, 1, 3])
def test_windows_of_another_graph_are_none(count: int | None) -> None:
    known = None if count is None else Observations.nothing(count, 300)
    made = take_snapshot(view(seen=seen(), observations=known), SETTINGS, NOW_S)
    assert made.observations.parallelism.shape == (0, len(GRAPH.operators))


# partitions of sources


def partitions_of(known: JobView, **of_settings: int) -> int | None:
    given = {key.replace("__", "/"): count for key, count in of_settings.items()}
    settings = SETTINGS.model_copy(update={"clusters": {"c": Cluster(partitions=given)}})
    return take_snapshot(known, settings, NOW_S).graph.operators[0].partitions


def test_partitions_are_those_of_the_settings_or_else_as_ingested_or_else_as_seen() -> None:
    known = view(seen=seen(graph=graph(None)), graph=graph(8))
    assert partitions_of(known) == 8
    assert partitions_of(known, orders__source=6) == 6
    assert partitions_of(replace(known, graph=None)) is None
    assert partitions_of(view(seen=seen(graph=graph(4)), graph=graph(None))) == 4


def test_the_settings_may_name_a_source_by_its_vertex_id() -> None:
    assert partitions_of(view(seen=seen(), graph=graph(8)), **{f"orders__{'1' * 32}": 5}) == 5


def test_a_step_of_a_job_that_is_not_seen_has_a_name_of_its_own() -> None:
    known, wanted = view(seen=seen()), {"source": 1, "map": 5}
    assert name_step(view(), RUNNING, wanted) == name_step(view(), RUNNING, wanted) != name_step(known, RUNNING, wanted)


@pytest.mark.parametrize(("cluster", "slots"), [(Cluster(), 1), (Cluster(taskmanager_slots=4), 4)])
def test_slots_of_a_task_manager_are_those_of_the_settings_as_in_plans(cluster: Cluster, slots: int) -> None:
    settings = SETTINGS.model_copy(update={"clusters": {"c": cluster}})
    known = replace(view(seen=seen(), observations=windows(500.0)), cluster="c")
    assert take_snapshot(known, settings, NOW_S).taskmanager_slots == slots
