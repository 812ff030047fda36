"""What is put together for each job at a tick: its polls, plan, memory, graph and models, under its own name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from live_replies import SOURCE, T0_S, WORK, Job

from controller.view.fleet_view import FleetView, FleetViewer
from controller.view.plan_rows import GraphOperator, JobGraphRow, JobPlan, PlanMemory, PolicyMemory
from include.domain.operator_matching import PlacedOperator
from models.polling.poll_history import PollHistory
from tests.unit.test_evaluation import plan, step

Key = tuple[str, str]
ORDERS: Key = ("c", "orders")
PLACED = (PlacedOperator(SOURCE, "1" * 32, 0), PlacedOperator(WORK, "2" * 32, 1, (SOURCE,)))
INGESTED = (PlacedOperator("as ingested", "1" * 32, 0),)
GRAPH = JobGraphRow("a" * 32, T0_S, (GraphOperator("as ingested", "1" * 32, 0, (), (), 1, 128),))
MEMORY = "{}"


@dataclass
class WrittenPlans:
    """What planning has left, without a table; each mapping is the same object for as long as nothing is written."""

    plans: Mapping[Key, JobPlan] = field(default_factory=dict)
    memories: Mapping[Key, PlanMemory] = field(default_factory=dict)
    graphs: Mapping[Key, JobGraphRow] = field(default_factory=dict)
    versions: Mapping[Key, Sequence[Any]] = field(default_factory=dict)

    def read_plans(self, now_s: float) -> Mapping[Key, JobPlan]:
        return self.plans

    def read_memories(self, now_s: float) -> Mapping[Key, PlanMemory]:
        return self.memories

    def read_graphs(self, now_s: float) -> Mapping[Key, JobGraphRow]:
        return self.graphs

    def read_versions(self, now_s: float) -> Mapping[Key, Sequence[Any]]:
        return self.versions


class AskedChampion:
    """Notes by which operators it is asked for models; has none."""

    def __init__(self) -> None:
        self.asked: dict[Key, tuple[str, ...]] = {}

    def models_of(self, cluster: str, job: str, present: Sequence[PlacedOperator] = ()) -> None:
        self.asked[cluster, job] = tuple(one.name for one in present)


def look(plans: WrittenPlans, *jobs: Job, clusters: Sequence[str] = ("c",), state: str = "RUNNING") -> FleetView:
    return viewer_of(plans, *jobs, clusters=clusters, state=state).take(T0_S)


def viewer_of(
    plans: WrittenPlans,
    *jobs: Job,
    clusters: Sequence[str] = ("c",),
    state: str = "RUNNING",
    champion: AskedChampion | None = None,
) -> FleetViewer:
    history = PollHistory(dict.fromkeys(clusters, 300))
    for job in jobs:
        history.add([job.job(-30, state=state), job.plan(-29)])
    asked: Any = champion or AskedChampion()
    return FleetViewer(history, plans, asked, dict.fromkeys(clusters, 60.0))  # type: ignore[arg-type]


def of_cluster(name: str) -> Job:
    return Job(job_id=name * 32, cluster=name)


def test_a_cluster_has_its_own_jobs_alone() -> None:
    view = look(WrittenPlans(), of_cluster("c"), of_cluster("d"), clusters=("c", "d"))
    assert {name: list(view.of_cluster(name)) for name in "cde"} == {"c": ["orders"], "d": ["orders"], "e": []}
    assert view.of_cluster("d")["orders"].seen.job_id == "d" * 32


def test_a_cluster_that_is_no_matter_of_this_controller_is_left_out() -> None:
    """Tables hold the plans of all clusters, and raw files may be of any."""
    plans = WrittenPlans({ORDERS: plan(step()), ("d", "planned"): plan(step())})
    view = look(plans, of_cluster("c"), of_cluster("d"), clusters=("c",))
    assert (set(view.jobs), set(view.seen)) == ({ORDERS}, {ORDERS})


@pytest.mark.parametrize(("state", "count"), [("RUNNING", 1), ("RESTARTING", 1), ("FINISHED", 0), ("FAILED", 0)])
def test_a_job_that_has_ended_is_not_seen(state: str, count: int) -> None:
    assert len(look(WrittenPlans(), Job(), state=state).seen) == count


@pytest.mark.parametrize(
    ("jobs", "versions", "expected"),
    [
        ([Job()], [INGESTED], (SOURCE, WORK)),
        ([], [PLACED, INGESTED], ("as ingested",)),
        ([], [], ()),
    ],
    ids=["as polled", "as last ingested", "as trained"],
)
def test_models_are_asked_for_by_the_operators_that_are_known(jobs, versions, expected) -> None:
    champion = AskedChampion()
    plans = WrittenPlans({ORDERS: plan(step())}, versions={ORDERS: versions} if versions else {})
    viewer_of(plans, *jobs, champion=champion).take(T0_S)
    assert champion.asked == {ORDERS: expected}


def test_a_job_without_plan_and_memory_has_its_windows(caplog: pytest.LogCaptureFixture) -> None:
    (job,) = look(WrittenPlans(), Job()).jobs.values()
    assert job.observations is not None
    assert (job.plan, job.left, job.graph) == (None, None, None)
    assert not caplog.records


def test_a_job_that_is_not_polled_has_what_planning_left() -> None:
    plans = WrittenPlans({ORDERS: plan(step())}, {ORDERS: PlanMemory(T0_S, "planner", MEMORY)}, {ORDERS: GRAPH})
    (job,) = look(plans).jobs.values()
    assert (job.seen, job.observations, job.plan) == (None, None, plan(step()))
    assert job.left == PolicyMemory("planner", MEMORY)
    assert job.graph is not None
    assert job.graph.names == ("as ingested",)


def test_a_policy_that_left_nothing_is_not_remembered(caplog: pytest.LogCaptureFixture) -> None:
    plans = WrittenPlans({ORDERS: plan(step())}, {ORDERS: PlanMemory(T0_S, "ds2", "")})
    (job,) = look(plans).jobs.values()
    assert job.left is None
    assert not caplog.records


def test_memories_and_graphs_are_read_again_when_they_were_written_again_and_else_kept(caplog) -> None:
    fed_by_none = replace(GRAPH.operators[0], upstream=("nowhere",))
    plans = WrittenPlans(
        {ORDERS: plan(step())},
        {ORDERS: PlanMemory(T0_S, "planner", MEMORY)},
        {ORDERS: GRAPH, ("c", "broken"): replace(GRAPH, operators=(fed_by_none,))},
    )
    viewer = viewer_of(plans)
    first, second = (viewer.take(T0_S).jobs[ORDERS] for _ in range(2))
    assert second.left is first.left
    assert second.graph is first.graph
    assert len(caplog.records) == 1  # what cannot be used is said once
    other = replace(GRAPH, operators=(replace(GRAPH.operators[0], name="another"),))
    plans.memories, plans.graphs = {ORDERS: PlanMemory(T0_S, "planner", "{}\n")}, {ORDERS: other}
    third = viewer.take(T0_S).jobs[ORDERS]
    assert third.left == PolicyMemory("planner", "{}\n")
    assert third.graph is not None
    assert third.graph.names == ("another",)


def test_an_operator_without_a_group_shares_slots_with_those_of_flinks_default_group() -> None:
    operators = (
        GraphOperator("source", "1" * 32, 0, (), (), 1, 128),
        GraphOperator("map", "2" * 32, 1, ("source",), ("FORWARD",), 1, 128, slot_sharing_group="default"),
    )
    (job,) = look(
        WrittenPlans({ORDERS: plan(step())}, graphs={ORDERS: replace(GRAPH, operators=operators)})
    ).jobs.values()
    assert job.graph is not None
    assert {one.slot_sharing_group for one in job.graph.operators} == {"default"}
