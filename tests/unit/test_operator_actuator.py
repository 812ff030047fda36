"""What the actuator makes of Flink's and the API server's words, on the model of both."""

from __future__ import annotations

from dataclasses import replace

import pytest
from controller_machine import BASE, JOB
from operator_model import AUTOSCALER, ModelApi, ModelFlink, OperatorModel
from single_job import control_job

from controller.actuators.actuator import RequestConflictError, RequestRefusedError, RequestUnknownError
from controller.actuators.guide_actuator import GuideActuator, express_as_least
from controller.actuators.operator_actuator import OperatorActuator
from controller.actuators.resource_directory import ResourceDirectory
from controller.decisions.job_control import JobControl
from include.kubernetes.faults import ApiRefusedError
from include.kubernetes.manifests import MIN_PARALLELISM
from include.kubernetes.overrides import OVERRIDES
from include.settings.kubernetes import Kubernetes
from models.control.case import Verb
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin

WANTED = {"a": 3, "b": 2}


class StoredLog:
    def __init__(self):
        self.entries = []

    def append_all(self, entries):
        self.entries.extend(entries)

    def read_last(self, job):
        return self.entries[-1] if self.entries else None

    def read_history(self, job):
        return self.entries[-1].history if self.entries else JobHistory()

    def read_open(self):
        return {one.job: one for one in self.entries[-1:] if one.history.in_flight is not None}


@pytest.fixture
def model():
    return OperatorModel()


@pytest.fixture
def world(model):
    """A controller that has taken the job over."""
    log = StoredLog()

    usual = model.open_actuator()

    def tick(wanted=None, limits=BASE, actuator=usual):
        intention = wanted and Intention(wanted, Origin.PLAN, "step", "tested", model.now_s + 600)
        controller = JobControl(actuator, log, lambda: None, lambda: model.now_s)
        return control_job(controller, JOB, intention, lambda: limits)

    assert tick().reason == "new_job_id"
    tick.log = log
    return tick


def open_with(model, *, allows_upgrade=False, **settings):
    api = ModelApi(model)
    directory = ResourceDirectory(api, Kubernetes(**settings))
    return OperatorActuator(ModelFlink(model), api, directory, allows_upgrade=allows_upgrade)


def test_a_request_is_the_whole_map_and_is_confirmed_by_flink(model, world):
    assert world(WANTED).verb is Verb.RESCALE
    assert model.configuration[OVERRIDES] == "a:3,b:2"
    assert world(WANTED).verb is Verb.CONFIRM
    assert world(WANTED).reason == "as_desired"


def test_a_patch_that_may_not_leave_any_more_is_not_sent(model):
    api, allowed = ModelApi(model), [False]
    directory = ResourceDirectory(api, Kubernetes())
    actuator = OperatorActuator(ModelFlink(model), api, directory, may_change=lambda: allowed[0])
    before = dict(model.configuration)
    observed = actuator.observe(JOB)
    with pytest.raises(RequestConflictError, match="too much time"):
        actuator.request(JOB, observed.job_id, WANTED)
    assert dict(model.configuration) == before
    allowed[0] = True
    actuator.observe(JOB)
    actuator.request(JOB, observed.job_id, WANTED)
    assert dict(model.configuration) != before


def test_a_request_goes_by_the_last_look_alone(model):
    actuator = model.open_actuator()
    job_id = actuator.observe_all([JOB])[JOB].job_id
    assert actuator.observe_all([]) == {}  # the job has gone
    with pytest.raises(RequestRefusedError, match="was observed"):
        actuator.request(JOB, job_id, WANTED)


def test_what_the_operator_has_not_carried_out_is_in_flight_and_then_withdrawn_when_it_is_back(model, world):
    model.is_up = False
    world(WANTED)
    assert model.open_actuator().observe(JOB).requested == WANTED
    model.advance(60)
    assert world(WANTED).reason == "in_flight"
    model.now_s += 200
    assert world(WANTED).reason == "not_filled"
    assert world(WANTED).reason == "held"


def test_a_conflict_is_judged_afresh_and_sent_once_more(model, world):
    model.manner = "conflict"
    assert world(WANTED).verb is Verb.RESCALE
    assert world.log.entries[-1].answer == "accepted"
    assert model.requested == WANTED


def test_after_two_conflicts_nothing_was_sent_and_the_target_is_not_blocked(model, world, monkeypatch):
    actuator = model.open_actuator()
    monkeypatch.setattr(actuator, "request", lambda *_: (_ for _ in ()).throw(RequestConflictError("changed")))
    action = world(WANTED, actuator=actuator)
    assert action.reason == "withdrawn_before_sending"
    assert world.log.read_history(JOB).in_flight is None
    assert world(WANTED).verb is Verb.RESCALE


def test_a_persons_edit_that_comes_in_between_is_met_by_the_conflict_and_respected(model, world):
    model.manner = "edit"
    action = world(WANTED)
    assert action.reason == "withdrawn_before_sending"
    assert "foreign_change" in action.detail
    assert model.requested == {"a": 5, "b": 5}


def test_a_lost_map_is_written_again(model, world):
    world(WANTED)
    world(WANTED)
    model.advance(300)
    model.redeploy(2, 0, 2)
    assert model.requested == {"a": 2, "b": 2}
    text = model.configuration[OVERRIDES]
    assert world().reason == "new_job_id"
    assert world(limits=replace(BASE, mode=Mode.DRY_RUN)).is_dry_run
    assert model.configuration[OVERRIDES] == text
    assert world(limits=replace(BASE, in_blackout=True)).reason == "blackout"
    assert world().reason == "restore"
    assert model.configuration[OVERRIDES] != text
    assert model.requested == WANTED
    assert world().verb is Verb.CONFIRM
    assert world().reason == "as_desired"


def test_a_map_that_is_lost_while_the_job_keeps_its_id_is_written_again(model, world):
    world(WANTED)
    world(WANTED)
    model.advance(300)
    model.redeploy(3, 0, 2)
    assert model.job_id == "job-1"
    assert world().reason == "new_job_id"
    assert world().reason == "restore"


def test_a_map_that_a_person_takes_away_is_no_lost_map(model, world):
    world(WANTED)
    world(WANTED)
    model.advance(300)
    model.redeploy(2, 0, 3)
    assert world().reason == "new_job_id"
    assert "another parallelism" in world.log.read_history(JOB).held_because
    assert world().verb is Verb.WAIT or world().reason == "held"
    assert OVERRIDES not in model.configuration


def test_a_request_that_is_no_rescale_in_place_is_refused_or_says_what_it_costs(model, world):
    model.change("jobmanager.scheduler", "default", is_up=True)
    action = world(WANTED)
    assert (action.verb, action.reason) == (Verb.REFUSE, "not_in_place")
    assert "full_upgrade" in action.detail
    action = world(WANTED, actuator=open_with(model, allows_upgrade=True))
    assert action.verb is Verb.RESCALE
    assert "stopped and started" in action.detail


def test_the_operators_autoscaler_is_refused_with_the_keys_to_set(model, world):
    model.change(AUTOSCALER, "true", is_up=True)
    action = world(WANTED)
    assert action.reason == "other_autoscaler"
    assert 'job.autoscaler.enabled: "false"' in action.detail
    model.change("job.autoscaler.scaling.enabled", "false", is_up=True)
    assert world(WANTED).verb is Verb.RESCALE


def test_without_a_resource_nothing_is_sent(model, world):
    actuator = open_with(model, resources={"orders": "other"})
    action = world(WANTED, actuator=actuator)
    assert (action.verb, action.reason) == (Verb.REFUSE, "no_resource")
    with pytest.raises(RequestRefusedError, match="no resource"):
        actuator.request(JOB, model.job_id, WANTED)
    assert world(WANTED, actuator=open_with(model, deployment="elsewhere")).reason == "no_resource"
    assert open_with(model, resources={"orders": "orders"}).observe(JOB).obstacle == ""


def test_a_login_without_rights_is_named_with_what_to_do(model, world, monkeypatch):
    def refuse(*_):
        raise ApiRefusedError(403, "forbidden")

    monkeypatch.setattr(ModelApi, "list_resources", refuse)
    action = world(WANTED)
    assert action.reason == "no_rights"
    assert "tidewise manifests" in action.detail


def test_two_resources_of_one_job_id_are_told_apart_by_the_name_of_the_job(model, world, monkeypatch):
    other = model.read()
    other["metadata"]["name"] = "second"
    monkeypatch.setattr(ModelApi, "list_resources", lambda self, kind: [self.model.read(), other])
    assert open_with(model).observe_all([JOB])[JOB].obstacle == "ambiguous_resource"
    other["status"]["jobStatus"]["jobName"] = "rides"
    assert open_with(model).observe_all([JOB])[JOB].obstacle == ""


def test_an_api_server_without_a_reply_is_no_reply_of_the_cluster(model, world):
    model.is_silent = True
    assert world(WANTED).reason == "no_reply"
    with pytest.raises(RequestUnknownError):
        model.open_actuator().observe_all([JOB])


def test_a_map_that_cannot_be_read_is_refused(model, world):
    model.change(OVERRIDES, "nonsense", is_up=False)
    assert world(WANTED).reason == "unreadable_resource"


@pytest.mark.covers("flink_waits 1")
@pytest.mark.covers("flink_waits 2")
@pytest.mark.parametrize(
    ("checkpoints", "reason"),
    [("savepoint", "savepoint_in_progress"), ("off", "checkpoints_off"), ("untold", "checkpoints_unknown")],
)
def test_a_map_is_written_only_when_flink_can_restart_the_job(model, world, checkpoints, reason):
    model.checkpoints = checkpoints
    assert world(WANTED).reason == reason
    assert OVERRIDES not in model.configuration
    model.checkpoints = "fine"
    assert world(WANTED).verb is Verb.RESCALE


# mode guide


def test_guide_leaves_acting_to_the_autoscaler_and_gives_it_a_least_parallelism(model, world):
    guide = GuideActuator(ModelFlink(model), ModelApi(model), ResourceDirectory(ModelApi(model), Kubernetes()))
    log = StoredLog()

    def tick(wanted=None, limits=BASE):
        intention = wanted and Intention(wanted, Origin.PLAN, "step", "tested", model.now_s + 600)
        controller = JobControl(guide, log, lambda: None, lambda: model.now_s, express_as_least)
        return control_job(controller, JOB, intention, lambda: limits)

    assert tick().reason == "new_job_id"
    assert tick(WANTED).reason == "autoscaler_off"
    model.change(AUTOSCALER, "true", is_up=True)
    assert tick(WANTED, replace(BASE, is_held=True)).reason == "on_hold"
    model.checkpoints, model.heap_share = "savepoint", 0.99  # a least parallelism restarts nothing by itself
    assert tick(WANTED).verb is Verb.RESCALE
    assert model.configuration[MIN_PARALLELISM] == "3"
    assert OVERRIDES not in model.configuration
    assert tick(WANTED).verb is Verb.CONFIRM
    model.change(MIN_PARALLELISM, "5", is_up=True)
    model.advance(300)
    assert tick(WANTED).reason == "foreign_change"


@pytest.mark.parametrize(
    ("groups", "wanted", "least"),
    [
        ({}, {"a": 4, "b": 1}, 4),
        ({"a": "own"}, {"a": 4, "b": 1}, 1),
        ({"a": "own"}, {"a": 4, "b": 3, "c": 2}, 3),
    ],
)
def test_the_least_parallelism_takes_no_slots_beyond_the_plan(groups, wanted, least):
    observed = ObservedJob("1", "RUNNING", {}, {}, slot_sharing_group=groups)
    reported = express_as_least(Intention(wanted, Origin.PLAN, "s", "r", 0.0), observed)
    assert reported.parallelism == {MIN_PARALLELISM: least}
