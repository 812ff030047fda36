"""A job that the operator's autoscaler rescales, as the controller sees it: by its least parallelism."""

from __future__ import annotations

from dataclasses import replace

import pytest
from controller_machine import JOB
from operator_model import AUTOSCALER, ModelApi, ModelFlink, OperatorModel

from controller.actuators.actuator import RequestRefusedError, RequestUnknownError
from controller.actuators.guide_actuator import GuideActuator, express_as_least
from controller.actuators.resource_directory import ResourceDirectory
from include.kubernetes.faults import ApiRefusedError
from include.kubernetes.manifests import MIN_PARALLELISM
from include.settings.kubernetes import Kubernetes
from models.control.readiness import Readiness
from models.control.state import Intention, ObservedJob, Origin, Parallelism

AS_FLINK_SAYS = ObservedJob(
    "1", "RUNNING", {"a": 4, "b": 2}, {"a": 4, "b": 2}, {"a": 128, "b": 64}, free_slots=3, cluster_slots_used=9
)


class FixedFlink(ModelFlink):
    """Says of the job what a test wants it to."""

    said = AS_FLINK_SAYS
    ready: Readiness | None = Readiness(restarts=True, wait_s=60.0)

    def observe(self, job: str) -> ObservedJob:
        return replace(self.said, job_id=self.model.job_id)

    def inspect(self, job: str, job_id: str) -> Readiness | None:
        return self.ready


@pytest.fixture
def model() -> OperatorModel:
    result = OperatorModel()
    result.change(AUTOSCALER, "true", is_up=True)
    result.change(MIN_PARALLELISM, "3", is_up=True)
    return result


def guide(model: OperatorModel, said: ObservedJob = AS_FLINK_SAYS) -> GuideActuator:
    api, flink = ModelApi(model), FixedFlink(model)
    flink.said = said
    return GuideActuator(flink, api, ResourceDirectory(api, Kubernetes()))


def test_slots_above_the_least_parallelism_count_as_free(model: OperatorModel) -> None:
    observed = guide(model).observe(JOB)
    assert (observed.running, observed.requested) == ({MIN_PARALLELISM: 3}, {MIN_PARALLELISM: 3})
    assert observed.max_parallelism == {MIN_PARALLELISM: 128}
    assert (observed.free_slots, observed.cluster_slots_used) == (4, 8)


def test_what_flink_does_not_tell_stays_unknown(model: OperatorModel) -> None:
    said = replace(AS_FLINK_SAYS, max_parallelism={}, free_slots=None, cluster_slots_used=None)
    observed = guide(model, said).observe(JOB)
    assert (observed.max_parallelism, observed.free_slots, observed.cluster_slots_used) == ({}, None, None)
    assert not observed.obstacle


def test_a_least_parallelism_is_in_force_once_the_job_runs_and_the_operator_has_taken_it_over(
    model: OperatorModel,
) -> None:
    assert guide(model, replace(AS_FLINK_SAYS, running={})).observe(JOB).running == {}
    model.change(MIN_PARALLELISM, "4", is_up=False)
    assert guide(model).observe(JOB).running == {}


def test_what_is_not_known_before_a_request_stays_unknown(model: OperatorModel) -> None:
    actuator = guide(model)
    ready = actuator.inspect(JOB, model.job_id)
    assert ready is not None
    assert (ready.restarts, ready.wait_s) == (False, 0.0)
    actuator._flink.ready = None  # type: ignore[attr-defined]
    assert actuator.inspect(JOB, model.job_id) is None


@pytest.mark.parametrize("wanted", [{}, {MIN_PARALLELISM: 5}])
def test_what_is_a_least_parallelism_already_is_left_as_it_is(wanted: Parallelism) -> None:
    intention = Intention(wanted, Origin.PLAN, "s", "r", 0.0)
    assert express_as_least(intention, AS_FLINK_SAYS) is intention


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, RequestRefusedError),
        (422, RequestRefusedError),
        (408, RequestUnknownError),
        (429, RequestUnknownError),
        (302, RequestUnknownError),
        (500, RequestUnknownError),
    ],
)
def test_a_refusal_is_one_only_where_nothing_can_have_been_written(
    model: OperatorModel, monkeypatch: pytest.MonkeyPatch, status: int, error: type[Exception]
) -> None:
    def refuse(*given: object) -> None:
        raise ApiRefusedError(status, "not today")

    actuator = guide(model)
    observed = actuator.observe(JOB)
    assert observed.job_id is not None
    monkeypatch.setattr(ModelApi, "patch_resource", refuse)
    with pytest.raises(error, match="not today"):
        actuator.request(JOB, observed.job_id, {MIN_PARALLELISM: 4})
