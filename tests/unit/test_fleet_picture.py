"""What is put together for each job at a tick: its polls, plan, memory, graph and models, under its own name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from live_replies import SOURCE, T0_S, WORK, Job

from controller.view.fleet_view import FleetView, FleetViewer
from controller.view.plan_rows import JobPlan, PolicyMemory
from include.domain.graph import JobGraph, Operator
from include.domain.operator_matching import PlacedOperator
from models.polling.poll_history import PollHistory
from tests.unit.test_evaluation import plan, step

Key = tuple[str, str]
ORDERS: Key = ("c", "orders")
PLACED = (PlacedOperator(SOURCE, "1" * 32, 0), PlacedOperator(WORK, "2" * 32, 1, (SOURCE,)))
INGESTED = (PlacedOperator("as ingested", "1" * 32, 0),)
GRAPH = JobGraph.from_operators([Operator("as ingested", (), 128)])
MEMORY = "{}"


@dataclass
class WrittenPlans:
    """What planning has left, without a table; each mapping is the same object for as long as nothing is written."""

    plans: Mapping[Key, JobPlan] = field(default_factory=dict)
    memories: Mapping[Key, PolicyMemory] = field(default_factory=dict)
    graphs: Mapping[Key, JobGraph] = field(default_factory=dict)
    versions: Mapping[Key, Sequence[Any]] = field(default_factory=dict)

    def read_plans(self, now_s: float) -> Mapping[Key, JobPlan]:
        return self.plans

    def read_memories(self, now_s: float) -> Mapping[Key, PolicyMemory]:
        return self.memories

    def read_graphs(self, now_s: float) -> Mapping[Key, JobGraph]:
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
    plans = WrittenPlans({ORDERS: plan(step())}, {ORDERS: PolicyMemory("planner", MEMORY)}, {ORDERS: GRAPH})
    (job,) = look(plans).jobs.values()
    assert (job.seen, job.observations, job.plan) == (None, None, plan(step()))
    assert job.left == PolicyMemory("planner", MEMORY)
    assert job.graph is not None
    assert job.graph.names == ("as ingested",)


def test_memories_and_graphs_are_those_that_planning_left_last() -> None:
    plans = WrittenPlans({ORDERS: plan(step())}, {ORDERS: PolicyMemory("planner", MEMORY)}, {ORDERS: GRAPH})
    viewer = viewer_of(plans)
    assert viewer.take(T0_S).jobs[ORDERS].graph is GRAPH
    plans.memories, plans.graphs = {ORDERS: PolicyMemory("planner", "{}\n")}, {}
    after = viewer.take(T0_S).jobs[ORDERS]
    assert (after.left, after.graph) == (PolicyMemory("planner", "{}\n"), None)
