"""Which resource of the API server is a job's: by its id, and by names only where several have that id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from held_objects import count_held
from operator_model import OperatorModel

from controller.actuators.resource_directory import ResourceDirectory
from include.kubernetes.faults import ApiRefusedError
from include.kubernetes.job_resource import DEPLOYMENT, SESSION_JOB
from include.settings.kubernetes import Kubernetes

JOB = "live/orders"


def resource(name: str, *, of: str = "", job_name: str = "orders", job_id: str = "1") -> dict[str, Any]:
    """Return a resource: a session job where it names a deployment."""
    model = OperatorModel()
    result = model.read()
    result["metadata"]["name"] = name
    result["status"]["jobStatus"] = {"jobId": job_id, "jobName": job_name, "state": "RUNNING"}
    if of:
        result["kind"], result["spec"]["deploymentName"] = SESSION_JOB, of
    return result


class Resources:
    """An API server that holds some resources, or refuses."""

    def __init__(self, *held: dict[str, Any]) -> None:
        self.held, self.asked, self.refuses_with = list(held), list[tuple[str, str]](), 0

    def _refuse(self) -> None:
        if self.refuses_with:
            raise ApiRefusedError(self.refuses_with, "not now")

    def list_resources(self, kind: str) -> Sequence[dict[str, Any]]:
        self._refuse()
        return [one for one in self.held if one["kind"] == kind]

    def read_resource(self, kind: str, name: str) -> dict[str, Any] | None:
        self.asked.append((kind, name))
        self._refuse()
        return next((one for one in self.held if (one["kind"], one["metadata"]["name"]) == (kind, name)), None)

    def patch_resource(self, kind: str, name: str, patch: object) -> None:
        raise AssertionError("a directory writes nothing")


def find(api: Resources, **settings: Any) -> tuple[str, str, str]:
    """Return name, obstacle and detail of what is found for the job with id 1."""
    directory = ResourceDirectory(api, Kubernetes(**settings))  # type: ignore[arg-type]
    result = directory.find(JOB, "1")
    return result.resource.name if result.resource is not None else "", result.obstacle, result.detail


@pytest.fixture
def two() -> Resources:
    return Resources(resource("first", job_name="rides"), resource("second"))


def test_of_two_resources_with_one_id_the_one_with_the_name_of_the_job_is_it(two: Resources) -> None:
    assert find(two)[0] == "second"


def test_two_resources_that_no_name_tells_apart_are_both_told(two: Resources) -> None:
    two.held[1]["status"]["jobStatus"]["jobName"] = "carts"
    name, obstacle, detail = find(two)
    assert (name, obstacle) == ("", "ambiguous_resource")
    assert detail.startswith("first, second have this job's id 1: ")


def test_what_is_missing_is_told_by_its_name_where_the_settings_have_one() -> None:
    other = resource("other", job_id="2")
    assert find(Resources(other)) == (
        "",
        "no_resource",
        "namespace default has no FlinkDeployment with job id 1",
    )
    assert find(Resources(other), resources={"orders": "mine"}) == (
        "",
        "no_resource",
        "namespace default has no FlinkDeployment mine with job id 1",
    )


def test_only_the_deployments_of_session_jobs_that_count_are_read() -> None:
    api = Resources(resource("ours", of="mine"), resource("theirs", of="others"), resource("mine"), resource("others"))
    assert find(api, kind=SESSION_JOB, deployment="mine")[0] == "ours"
    assert api.asked == [(DEPLOYMENT, "mine")]


def test_a_session_job_runs_as_its_deployment_is_configured() -> None:
    ours = resource("ours", of="mine")
    ours["spec"] = {"deploymentName": "mine", "flinkConfiguration": {}}
    directory = ResourceDirectory(Resources(ours, resource("mine")), Kubernetes(kind=SESSION_JOB))  # type: ignore[arg-type]
    found = directory.find(JOB, "1").resource
    assert found is not None
    assert (found.flink_version, found.effective["jobmanager.scheduler"]) == ("v2_1", "adaptive")


def test_a_session_job_without_its_deployment_is_found_by_its_id() -> None:
    nameless = resource("nameless", of="x", job_id="2")
    nameless["spec"]["deploymentName"] = ""
    api = Resources(resource("ours", of="gone"), nameless)
    assert find(api, kind=SESSION_JOB)[0] == "ours"
    assert api.asked == [(DEPLOYMENT, "gone")]


@pytest.mark.parametrize("status", [0, 403])
def test_a_resource_stays_known_while_it_is_there_or_nobody_may_look(two: Resources, status: int) -> None:
    directory = ResourceDirectory(two, Kubernetes())  # type: ignore[arg-type]
    directory.find(JOB, "1")
    two.refuses_with = status
    directory.read_all()
    two.refuses_with = 0
    known = directory.find_known(JOB)
    assert known is not None
    assert known.fits("1")


def test_a_job_whose_resource_was_deleted_is_forgotten() -> None:
    api, held = Resources(), list[int]()
    directory = ResourceDirectory(api, Kubernetes())  # type: ignore[arg-type]
    for number in range(1, 9):
        api.held = [resource(f"job-{number}", job_id=str(number))]
        assert directory.find(f"live/job-{number}", str(number)).resource is not None
        assert directory.find_known(f"live/job-{number}") is not None
        held.append(count_held(directory))
        api.asked.clear()
    assert held[-1] <= held[2]


@pytest.mark.parametrize("status", [401, 403])
def test_a_login_without_rights_is_an_obstacle(two: Resources, status: int) -> None:
    two.refuses_with = status
    assert find(two)[:2] == ("", "no_rights")


def test_any_other_refusal_is_no_reply(two: Resources) -> None:
    directory = ResourceDirectory(two, Kubernetes())  # type: ignore[arg-type]
    assert directory.find(JOB, "1").resource is not None
    two.refuses_with = 422
    with pytest.raises(ApiRefusedError):
        directory.read_all()
    with pytest.raises(ApiRefusedError):
        directory.find_known(JOB)
