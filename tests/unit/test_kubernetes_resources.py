"""The map of overrides and the resource that holds it: read, judged, patched."""

from __future__ import annotations

import json

import pytest

from include.kubernetes.configuration import find_path, flatten
from include.kubernetes.job_resource import find_obstacle, find_upgrade_reason, read_job_resource
from include.kubernetes.overrides import OVERRIDES, OverridesError, form_patch, read_overrides, write_overrides

A, B = "a" * 32, "b" * 32


def resource(configuration=None, *, reconciled=None, spec=None, session=None, **status):
    dealt_with = {"spec": {"flinkConfiguration": configuration if reconciled is None else reconciled}}
    result = {
        "kind": "FlinkDeployment",
        "metadata": {"name": "orders", "namespace": "flink", "resourceVersion": "7", "generation": 3},
        "spec": {"flinkVersion": "v1_18", "flinkConfiguration": configuration or {}, **(spec or {})},
        "status": {
            "observedGeneration": 3,
            "jobStatus": {"jobId": "1" * 32, "state": "RUNNING"},
            "reconciliationStatus": {"state": "DEPLOYED", "lastReconciledSpec": json.dumps(dealt_with)},
            **status,
        },
    }
    return read_job_resource(result, session)


def test_keys_are_found_flat_and_nested():
    configuration = {"pipeline": {"jobvertex-parallelism-overrides": f"{A}:2"}, "rest.port": 8081, "a": {"b": True}}
    assert flatten(configuration) == {OVERRIDES: f"{A}:2", "rest.port": "8081", "a.b": "true"}
    assert find_path(configuration, OVERRIDES) == ("pipeline", "jobvertex-parallelism-overrides")
    assert find_path(configuration, "a.c") == ("a.c",)
    assert find_path({}, OVERRIDES) == (OVERRIDES,)


@pytest.mark.parametrize(
    "text", [f"{A}:2,{B}:3", f" {A} : 2 , {B}:3 ", f"'{A}:2','{B}:3'", {A: 2, B: 3}, f"{B}:3,{A}:2,"]
)
def test_a_map_is_read_however_it_is_written(text):
    assert read_overrides({OVERRIDES: text}) == {A: 2, B: 3}


@pytest.mark.parametrize("text", ["a", "a:b", "a:", "a:1:2"])
def test_what_flink_does_not_read_is_refused(text):
    with pytest.raises(OverridesError):
        read_overrides({OVERRIDES: text})


def test_the_same_map_is_written_as_another_text_each_time():
    first = write_overrides({A: 2}, None)
    second = write_overrides({A: 2}, first)
    third = write_overrides({A: 2}, second)
    assert first != second != third
    assert all(read_overrides({OVERRIDES: text}) == {A: 2} for text in (first, second, third))


def test_a_patch_has_the_whole_map_and_the_version_and_nothing_else():
    assert form_patch({"rest.port": "1"}, {B: 3, A: 2}, "7", frozenset({A, B})) == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"flinkConfiguration": {OVERRIDES: f"{A}:2,{B}:3"}},
    }


def test_a_patch_goes_where_the_map_stands():
    nested = {"pipeline": {"jobvertex-parallelism-overrides": f"{A}:1", "name": "x"}}
    patch = form_patch(nested, {A: 2}, "7", frozenset({A}))
    assert patch["spec"]["flinkConfiguration"] == {"pipeline": {"jobvertex-parallelism-overrides": f"{A}:2"}}


def test_a_vertex_that_was_overridden_is_never_left_out():
    with pytest.raises(OverridesError, match=B):
        form_patch({OVERRIDES: f"{A}:1,{B}:1"}, {A: 2}, "7", frozenset({A, B}))
    gone = form_patch({OVERRIDES: f"{A}:1,{B}:1"}, {A: 2}, "7", frozenset({A}))
    assert read_overrides(gone["spec"]["flinkConfiguration"]) == {A: 2}


ADAPTIVE = {"jobmanager.scheduler": "adaptive"}


@pytest.mark.parametrize(
    ("options", "scheduler", "told"),
    [
        ({"configuration": ADAPTIVE}, "", None),
        ({"configuration": {}}, "adaptive", None),
        ({"configuration": {"jobmanager.scheduler": "default"}}, "adaptive", "write jobmanager.scheduler: adaptive"),
        ({"configuration": {}}, "", "not set"),
        ({"configuration": ADAPTIVE, "spec": {"flinkVersion": "v1_17"}}, "", "v1_17"),
        ({"configuration": ADAPTIVE, "spec": {"flinkVersion": "v2_0"}}, "", None),
        ({"configuration": ADAPTIVE, "spec": {"flinkVersion": None}}, "", "not told"),
        ({"configuration": ADAPTIVE, "spec": {"mode": "standalone"}}, "", "standalone"),
        (
            {"configuration": {**ADAPTIVE, "kubernetes.operator.job.upgrade.inplace-scaling.enabled": False}},
            "",
            "inplace-scaling.enabled is false",
        ),
    ],
)
def test_in_place_only_as_the_operator_does_it(options, scheduler, told):
    reason = find_upgrade_reason(resource(**options), scheduler)
    assert (reason is None) if told is None else (told in reason)


@pytest.mark.parametrize(
    ("status", "name"),
    [
        ({}, None),
        ({"observedGeneration": 2}, "operator_busy"),
        ({"reconciliationStatus": {"state": "UPGRADING"}}, "operator_busy"),
        ({"reconciliationStatus": {"state": "ROLLED_BACK"}}, "operator_busy"),
        ({"jobStatus": {"state": "RECONCILING"}}, "operator_busy"),
        ({"jobStatus": {"state": "FINISHED"}}, "job_ended"),
        ({"jobStatus": {"state": "FAILED"}}, "job_ended"),
    ],
)
def test_a_change_waits_for_the_one_before(status, name):
    result = find_obstacle(resource(ADAPTIVE, **status))
    assert (None if result is None else result.name) == name


def test_a_session_job_has_version_and_scheduler_of_its_cluster():
    session = {"spec": {"flinkVersion": "v2_1", "flinkConfiguration": {"jobmanager": {"scheduler": "adaptive"}}}}
    result = resource({OVERRIDES: f"{A}:1"}, session=session, spec={"flinkVersion": None, "deploymentName": "s"})
    assert result.flink_version == "v2_1"
    assert find_upgrade_reason(result, "") is None


@pytest.mark.parametrize(
    ("configuration", "told"),
    [
        ({"job.autoscaler.enabled": "true"}, "job.autoscaler.enabled"),
        ({"kubernetes.operator.job.autoscaler.enabled": True}, "kubernetes.operator.job.autoscaler.enabled"),
        ({"job.autoscaler.enabled": "true", "job.autoscaler.scaling.enabled": "false"}, None),
        ({"job.autoscaler.enabled": "false"}, None),
        ({}, None),
    ],
)
def test_the_operators_autoscaler_is_found(configuration, told):
    acting = resource(configuration).autoscaler
    assert (acting is None) if told is None else (told in acting)
    if acting is not None:
        assert 'job.autoscaler.scaling.enabled: "false"' in acting
        assert "FlinkDeployment flink/orders" in acting


def test_an_autoscaler_that_the_operators_own_configuration_switches_on_shows_in_what_it_has_dealt_with():
    assert "of the operator's own configuration" in str(resource({}, reconciled={OVERRIDES: f"{A}:4"}).autoscaler)
    assert resource({OVERRIDES: f"{A}:2"}, reconciled={}, observedGeneration=2).autoscaler is None  # not its turn yet


def test_an_old_operator_tells_its_generation_beside_the_spec():
    dealt_with = {"spec": {}, "resource_metadata": {"metadata": {"generation": 3}}}
    status = {"reconciliationStatus": {"state": "DEPLOYED", "lastReconciledSpec": json.dumps(dealt_with)}}
    result = {"metadata": {"generation": 3}, "spec": {}, "status": status}
    assert not read_job_resource(result).is_pending
    assert read_job_resource({**result, "status": {}}).is_pending
