"""The controller's actuator on a real API server, a real operator and a real Flink cluster (docs/kubernetes.md)."""

from __future__ import annotations

import json
import time

import pytest
from operator_world import JOB, operator_world, wait_for

from include.kubernetes.overrides import OVERRIDES, read_overrides
from models.control.case import Verb

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]
IN_PLACE = "kubernetes.operator.job.upgrade.inplace-scaling.enabled"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with operator_world(tmp_path_factory.mktemp("operator")) as running:
        yield running


def map_of(world):
    return read_overrides(world.resource()["spec"].get("flinkConfiguration"))


def raise_one(observed, count):
    """Return what the job is asked for, with one vertex at a count."""
    return {**observed.requested, min(observed.requested): count}


def confirm(world, actuator, wanted):
    """Tick until the request is confirmed; returns how long that took."""
    began = time.monotonic()
    actions = []

    def is_confirmed():
        actions.append(world.tick(actuator, wanted))
        return actions[-1].verb is Verb.CONFIRM

    wait_for(is_confirmed, 120, world)
    return time.monotonic() - began


def test_a_patch_ends_in_a_rescale_in_place(world):
    actuator = world.actuator()
    observed = world.settle(actuator)
    wanted = raise_one(observed, 2)
    assert world.tick(actuator, wanted).verb is Verb.RESCALE
    assert world.log.entries[-1].answer == "accepted"
    seconds = confirm(world, actuator, wanted)
    after = actuator.observe(JOB)
    assert after.job_id == observed.job_id, "the job was stopped for it"
    assert dict(after.running) == wanted == map_of(world)
    assert "In-place scaling triggered" in world.operator_log.read_text()
    managers = {one["manager"] for one in world.resource()["metadata"]["managedFields"]}
    assert "tidewise" in managers
    print(f"in place: confirmed after {seconds:.0f} s, job id unchanged")


def test_a_conflict_is_judged_afresh_and_sent_once_more(world, monkeypatch):
    actuator = world.actuator()
    observed = world.settle(actuator)
    wanted = raise_one(observed, 3)
    patch, answers = actuator._api.patch_resource, []

    def patch_late(kind, name, body):
        if not answers:  # the operator, say, writes into the resource between reading and patching
            path = f"/apis/flink.apache.org/v1beta1/namespaces/default/flinksessionjobs/{name}"
            world.api.call(
                "PATCH", path, {"metadata": {"annotations": {"touched": "yes"}}}, "application/merge-patch+json"
            )
        try:
            reply = patch(kind, name, body)
        except Exception as error:
            answers.append(type(error).__name__)
            raise
        answers.append("patched")
        return reply

    monkeypatch.setattr(actuator._api, "patch_resource", patch_late)
    assert world.tick(actuator, wanted).verb is Verb.RESCALE
    assert answers == ["ApiConflictError", "patched"]
    seconds = confirm(world, actuator, wanted)
    assert actuator.observe(JOB).job_id == observed.job_id
    print(f"conflict: {answers}, confirmed after {seconds:.0f} s")


def test_a_foreign_edit_is_respected(world):
    actuator = world.actuator()
    observed = world.settle(actuator)
    theirs = raise_one(observed, 4)
    world.edit({OVERRIDES: ",".join(f"{vertex}:{count}" for vertex, count in theirs.items())})
    action = world.tick(actuator, raise_one(observed, 2))
    assert (action.verb, action.reason) == (Verb.REFUSE, "foreign_change"), action
    wait_for(lambda: actuator.observe(JOB).runs_at(theirs), 120, world)
    assert world.tick(actuator, raise_one(observed, 2)).reason == "held"
    assert map_of(world) == theirs
    print("foreign edit: refused as foreign_change, then held; the map stays as edited")


def test_a_lost_map_is_written_again(world):
    """After a resubmission Flink is not asked for what the resource holds: as FLINK-38770 leaves an application."""
    actuator = world.actuator()
    observed = world.settle(actuator)
    held = dict(observed.requested)
    assert held == map_of(world)
    world.edit(restartNonce=int(time.time()))
    wait_for(lambda: actuator.observe(JOB).job_id not in {None, observed.job_id}, 180, world)
    wait_for(lambda: bool(actuator.observe(JOB).running), 120, world)
    again = actuator.observe(JOB)
    print(f"after a restart of a session job Flink is asked for {again.requested}, the map says {held}")
    lost = dict.fromkeys(held, 1)
    world.flink.client.put_resource_requirements(again.job_id, lost)
    wait_for(lambda: actuator.observe(JOB).runs_at(lost) and not actuator.observe(JOB).obstacle, 120, world)
    assert map_of(world) == held, "the resource still holds the map, so nothing triggers the operator"
    text = world.resource()["spec"]["flinkConfiguration"][OVERRIDES]
    assert world.tick(actuator).reason == "new_job_id"
    assert world.tick(actuator).reason == "restore"
    written = world.resource()["spec"]["flinkConfiguration"][OVERRIDES]
    assert written != text
    assert map_of(world) == held
    seconds = confirm(world, actuator, None)
    after = actuator.observe(JOB)
    assert after.job_id == again.job_id
    assert dict(after.running) == held
    print(f"lost map: written again and confirmed after {seconds:.0f} s, in place")


def test_a_full_upgrade_is_refused_or_named(world):
    actuator = world.actuator()
    observed = world.settle(actuator)
    world.edit({IN_PLACE: "false"})
    wait_for(lambda: actuator.observe(JOB).obstacle == "not_in_place", 60, world)
    wanted = raise_one(observed, 2)
    action = world.tick(actuator, wanted)
    assert (action.verb, action.reason) == (Verb.REFUSE, "not_in_place"), action
    assert IN_PLACE in action.detail
    allowing = world.actuator(allows_upgrade=True)
    action = world.tick(allowing, wanted, "costly")
    assert action.verb is Verb.RESCALE
    assert "stopped and started" in action.detail
    wait_for(lambda: allowing.observe(JOB).job_id not in {None, observed.job_id}, 180, world)
    wait_for(lambda: bool(allowing.observe(JOB).running) and not allowing.observe(JOB).obstacle, 120, world)
    # Flink 2 ignores the map when the job is submitted: a second upgrade would lose it as well, a rescale does not.
    reasons = [world.tick(allowing).reason for _ in range(2)]
    assert reasons == ["new_job_id", "upgrade_loses_map"], reasons
    world.edit({IN_PLACE: None})
    wait_for(lambda: not allowing.observe(JOB).upgrade_reason and not allowing.observe(JOB).obstacle, 60, world)
    assert world.tick(allowing).reason == "restore"
    wait_for(lambda: allowing.observe(JOB).runs_at(wanted), 60, world)
    assert world.tick(allowing).verb is Verb.CONFIRM
    print(f"full upgrade: refused; allowed: {action.detail!r}; the map was lost, and restored in place")


def test_the_operators_autoscaler_is_found_and_refused(world):
    actuator = world.actuator()
    observed = world.settle(actuator)
    world.edit({"job.autoscaler.enabled": "true"})
    action = world.tick(actuator, raise_one(observed, 1))
    assert (action.verb, action.reason) == (Verb.REFUSE, "other_autoscaler"), action
    assert 'job.autoscaler.scaling.enabled: "false"' in action.detail
    before = map_of(world)
    world.edit({"job.autoscaler.scaling.enabled": "false"})  # what the refusal says to do
    wait_for(lambda: not actuator.observe(JOB).other_autoscaler, 60, world)
    assert map_of(world) == before
    print(f"autoscaler: {action.detail}")
    print(json.dumps(world.resource()["status"]["jobStatus"]))
