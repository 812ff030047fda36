"""A job under the Kubernetes operator and its resource: which one it is, and what it adds to what Flink says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from controller_machine import JOB
from operator_model import AUTOSCALER, ModelApi, ModelFlink, OperatorModel

from controller.actuators.actuator import RequestRefusedError, RequestUnknownError
from controller.actuators.operator_actuator import OperatorActuator
from controller.actuators.resource_directory import ResourceDirectory
from include.kubernetes.faults import ApiError
from include.kubernetes.job_resource import DEPLOYMENT, SESSION_JOB
from include.kubernetes.overrides import OVERRIDES
from include.settings.kubernetes import Kubernetes
from models.control.state import ObservedJob

NO_JOB = ObservedJob(None, "", {}, None)
WANTED = {"a": 3, "b": 2}


@dataclass
class Resources(ModelApi):
    """An API server with the model's resource and others; it counts what it is asked, and writes nothing."""

    others: list[dict[str, Any]] = field(default_factory=list)
    has_own: bool = True
    is_silent: bool = False
    questions: list[str] = field(default_factory=list)
    patched: list[str] = field(default_factory=list)

    def list_resources(self, kind: str) -> list[Mapping[str, Any]]:
        self.questions.append("all")
        return self._held(kind)

    def read_resource(self, kind: str, name: str) -> Mapping[str, Any] | None:
        self.questions.append(name)
        return next((one for one in self._held(kind) if one["metadata"]["name"] == name), None)

    def patch_resource(self, kind: str, name: str, patch: Mapping[str, Any]) -> Mapping[str, Any]:
        self.patched.append(name)
        return {}

    def _held(self, kind: str) -> list[Mapping[str, Any]]:
        if self.is_silent:
            raise ApiError("no reply")
        held: Sequence[Mapping[str, Any]] = [*([self.model.read()] if self.has_own else []), *self.others]
        return [one for one in held if one["kind"] == kind]


@dataclass
class Flink(ModelFlink):
    """Flink, which says of the job what a test changes; of another job it does not reply."""

    changes: dict[str, Any] = field(default_factory=dict)

    def observe(self, job: str) -> ObservedJob:
        return replace(super().observe(job), **self.changes)

    def observe_all(self, jobs: Iterable[str]) -> dict[str, ObservedJob | RequestUnknownError]:
        return {job: self.observe(job) if job == JOB else RequestUnknownError("no reply") for job in jobs}


@dataclass
class World:
    """A job, its resource, and who asks for both."""

    model: OperatorModel = field(default_factory=OperatorModel)

    def __post_init__(self) -> None:
        self.api, self.flink = Resources(self.model), Flink(self.model)
        self.actuator = OperatorActuator(self.flink, self.api, ResourceDirectory(self.api, Kubernetes()))

    def observe(self, **changes: Any) -> ObservedJob:
        """Return what is seen of the job while Flink says something else of it."""
        self.flink.changes = changes
        return self.actuator.observe(JOB)

    def resource(self, name: str, job_id: str = "job-1", of: str = "") -> dict[str, Any]:
        """Return another resource: a session job where it names a deployment."""
        result = self.model.read()
        result["metadata"]["name"], result["status"]["jobStatus"]["jobId"] = name, job_id
        if of:
            result["kind"], result["spec"]["deploymentName"] = SESSION_JOB, of
        return result


@pytest.fixture
def world() -> World:
    return World()


# which resource it is


def test_a_resource_that_is_known_is_read_alone(world: World) -> None:
    world.observe()
    assert world.observe().obstacle == ""
    assert world.api.questions == ["all", "orders"]


def test_of_a_job_that_flink_does_not_have_no_resource_is_looked_for(world: World) -> None:
    world.api.is_silent = True
    assert world.observe(**{name: getattr(NO_JOB, name) for name in NO_JOB.__slots__}) == NO_JOB


def test_a_job_that_has_moved_to_another_resource_is_changed_there(world: World) -> None:
    world.observe()
    second = world.resource("second", "job-2")
    second["spec"]["flinkConfiguration"][OVERRIDES] = "a:2,b:2"
    second["status"]["reconciliationStatus"]["lastReconciledSpec"] = json.dumps(
        {"spec": {"flinkConfiguration": {OVERRIDES: "a:2,b:2"}}}
    )
    world.api.others.append(second)
    observed = world.observe(job_id="job-2")
    assert (observed.obstacle, observed.declared) == ("", {"a": 2, "b": 2})
    world.actuator.request(JOB, "job-2", WANTED)
    assert world.api.patched == ["second"]


def test_a_request_for_another_job_than_the_one_that_was_observed_is_not_sent(world: World) -> None:
    world.observe()
    with pytest.raises(RequestRefusedError, match="no resource of job job-2 was observed"):
        world.actuator.request(JOB, "job-2", WANTED)
    assert world.api.patched == []


def test_a_job_without_a_reply_keeps_no_other_from_its_turn(world: World) -> None:
    observed = world.actuator.observe_all([JOB, "c/rides"])
    assert isinstance(observed["c/rides"], RequestUnknownError)
    job = observed[JOB]
    assert isinstance(job, ObservedJob)
    assert job.obstacle == ""


def test_a_resource_without_a_job_yet_is_nobody_s(world: World) -> None:
    world.api.has_own, world.api.others = False, [world.resource("new", job_id="")]
    directory = ResourceDirectory(world.api, Kubernetes())
    assert [directory.find(JOB, job_id).obstacle for job_id in ("", None, "job-1")] == ["no_resource"] * 3


def test_a_resource_that_cannot_be_read_is_told_from_one_that_is_missing(world: World) -> None:
    world.model.change(OVERRIDES, "nonsense", is_up=True)
    for name, obstacle in (("orders", "unreadable_resource"), ("mine", "no_resource")):
        directory = ResourceDirectory(world.api, Kubernetes(resources={"orders": name}))
        result = directory.find(JOB, "job-1")
        assert (result.resource, result.obstacle) == (None, obstacle)


def test_a_resource_that_has_gone_is_known_no_more(world: World) -> None:
    directory = ResourceDirectory(world.api, Kubernetes())
    assert directory.find_known(JOB) is None
    assert directory.find(JOB, "job-1").fits("job-1")
    known = directory.find_known(JOB)
    assert known is not None
    assert (known.fits("job-1"), known.fits("job-2"), known.fits(None)) == (True, False, False)
    world.api.has_own = False
    assert directory.find_known(JOB) is None


def test_a_session_job_is_known_with_its_cluster_until_it_moves_to_another(world: World) -> None:
    ours = world.resource("ours", of="mine")
    ours["spec"] = {"deploymentName": "mine", "flinkConfiguration": {}}
    world.api.others = [ours, world.resource("mine", job_id="")]
    directory = ResourceDirectory(world.api, Kubernetes(kind=SESSION_JOB, deployment="mine"))
    directory.find(JOB, "job-1")
    known = directory.find_known(JOB)
    assert known is not None
    assert known.resource is not None
    assert (known.resource.name, known.resource.flink_version) == ("ours", "v2_1")  # as its cluster says
    ours["spec"]["deploymentName"] = "theirs"
    assert directory.find_known(JOB) is None


def test_a_deployment_is_read_without_any_other_resource(world: World) -> None:
    directory = ResourceDirectory(world.api, Kubernetes(kind=DEPLOYMENT))
    assert directory.find(JOB, "job-1").fits("job-1")
    assert directory.find_known(JOB) is not None
    assert world.api.questions == ["all", "orders"]


# what it adds to what Flink says


@pytest.mark.parametrize(
    "changes", [{"requested": None, "obstacle": "default_scheduler"}, {"job_id": None, "problem": "ambiguous_name"}]
)
def test_a_job_that_flink_tells_too_little_of_is_left_as_flink_tells_it(world: World, changes: dict[str, Any]) -> None:
    observed = world.observe(**changes)
    assert observed == world.flink.observe(JOB)
    with pytest.raises(RequestRefusedError):
        world.actuator.request(JOB, "job-1", WANTED)


def test_what_the_operator_has_still_to_do_counts_for_vertices_that_the_job_has(world: World) -> None:
    world.model.change(OVERRIDES, "a:3,gone:9", is_up=False)
    observed = world.observe()
    assert (observed.requested, observed.obstacle) == ({"a": 3, "b": 2}, "operator_busy")


def test_another_autoscaler_is_known_from_flink_or_from_the_resource(world: World) -> None:
    assert world.observe().other_autoscaler is None
    assert world.observe(other_autoscaler="x").other_autoscaler == "x"
    world.model.change(AUTOSCALER, "true", is_up=True)
    assert "operator's autoscaler" in str(world.observe().other_autoscaler)


@pytest.mark.parametrize(
    ("lower", "counted", "obstacle"),
    [
        (None, None, ""),
        ({"a": 1, "b": 1}, {"a": 1, "b": 1}, ""),
        ({"a": 5, "b": 1}, {"a": 1, "b": 1}, ""),  # the operator's own: the upper bound
        ({"a": 3, "b": 1}, {"a": 3, "b": 1}, "lower_bounds"),
    ],
)
def test_lower_bounds_are_somebody_s_where_neither_flink_nor_the_operator_sets_them(
    world: World, lower: dict[str, int] | None, counted: dict[str, int] | None, obstacle: str
) -> None:
    observed = world.observe(requested={"a": 5, "b": 2}, lower_bounds=lower)
    assert (observed.lower_bounds, observed.obstacle) == (counted, obstacle)
