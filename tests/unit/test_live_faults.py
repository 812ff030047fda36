"""Replies that cannot be used harm only themselves: each is a named fault, and all else is as without them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from live_replies import SOURCE, T0_S, WORK, Job, metric

from include.domain.quarantine_rules import Rule
from include.flink.raw_format import Endpoint, RawRecord
from models.polling.poll_history import PollHistory

JOB, OTHER = Job(), Job(job_id="b" * 32, name="rides")
VERTEX = JOB.vertices[WORK]
HTML = "<html><body>502 Bad Gateway</body></html>"


def polls(job: Job) -> list[RawRecord]:
    return [*job.start(), *[job.metrics(at, taken=3.0 * at) for at in (0, 30)]]


def rates(made: PollHistory) -> dict[str, list[float]]:
    result = made.windows(T0_S + 60)
    return {
        job.job: result.observations(number).processing_rate_per_s[:, 1].tolist()
        for number, job in enumerate(made.jobs())
        if len(result.observations(number))
    }


def vertex_body(**other):
    body = JOB.body()
    body["vertices"][1].update(other)
    return body


BAD = {
    "an error": (JOB.record(40, Endpoint.JOB, "gone", status=404), Rule.HTTP_ERROR),
    "HTML": (JOB.record(40, Endpoint.JOB, HTML), Rule.MALFORMED_JSON),
    "HTML for metrics": (JOB.record(40, Endpoint.VERTEX_METRICS, HTML, VERTEX), Rule.MALFORMED_JSON),
    "nothing": (JOB.record(40, Endpoint.JOB, " "), Rule.EMPTY_BODY),
    "jobs null": (JOB.record(40, Endpoint.JOB, {"jobs": None}), Rule.MISSING_FIELD),
    "null": (JOB.record(40, Endpoint.JOB, "null"), Rule.WRONG_TYPE),
    "a list": (JOB.record(40, Endpoint.JOB, "[]"), Rule.WRONG_TYPE),
    "deeply nested": (JOB.record(40, Endpoint.JOB, "[" * 100_000), Rule.MALFORMED_JSON),
    "two documents": (JOB.record(40, Endpoint.JOB, "{}{}"), Rule.MALFORMED_JSON),
    "no name": (JOB.record(40, Endpoint.JOB, {**JOB.body(), "name": None}), Rule.MISSING_FIELD),
    "a name that is a number": (JOB.record(40, Endpoint.JOB, {**JOB.body(), "name": 5}), Rule.MISSING_FIELD),
    "no state": (JOB.record(40, Endpoint.JOB, {**JOB.body(), "state": None}), Rule.MISSING_FIELD),
    "vertices null": (JOB.record(40, Endpoint.JOB, {**JOB.body(), "vertices": None}), Rule.MISSING_FIELD),
    "a vertex null": (JOB.record(40, Endpoint.JOB, {**JOB.body(), "vertices": [None]}), Rule.WRONG_TYPE),
    "a vertex without id": (JOB.record(40, Endpoint.JOB, vertex_body(id=None)), Rule.WRONG_TYPE),
    "two vertices of one id": (JOB.record(40, Endpoint.JOB, vertex_body(id="1" * 32)), Rule.WRONG_TYPE),
    "no plan": (JOB.record(40, Endpoint.PLAN, {"plan": None}), Rule.MISSING_FIELD),
    "an edge from nowhere": (
        JOB.record(40, Endpoint.PLAN, {"plan": {"nodes": [{"id": "1", "inputs": [{}]}]}}),
        Rule.WRONG_TYPE,
    ),
    "checkpoints null": (JOB.record(40, Endpoint.CHECKPOINTS, "null"), Rule.WRONG_TYPE),
    "exceptions as a list": (JOB.record(40, Endpoint.EXCEPTIONS, "[]"), Rule.WRONG_TYPE),
    "job metrics as an object": (JOB.record(40, Endpoint.JOB_METRICS, "{}"), Rule.WRONG_TYPE),
    "metrics as an object": (JOB.record(40, Endpoint.VERTEX_METRICS, "{}", VERTEX), Rule.WRONG_TYPE),
    "a metric without id": (JOB.record(40, Endpoint.VERTEX_METRICS, [{"sum": 1.0}], VERTEX), Rule.WRONG_TYPE),
    "a null metric": (JOB.record(40, Endpoint.VERTEX_METRICS, [None], VERTEX), Rule.WRONG_TYPE),
    "an unknown vertex": (JOB.record(40, Endpoint.VERTEX_METRICS, "[]", "f" * 32), Rule.UNKNOWN_VERTEX),
    "an unknown job": (
        replace(JOB.record(40, Endpoint.PLAN, {"plan": {"nodes": []}}), job_id="f" * 32),
        Rule.UNKNOWN_VERTEX,
    ),
    "no vertex id": (JOB.record(40, Endpoint.VERTEX_METRICS, "[]", None), Rule.BAD_ID),
    "no job id": (replace(JOB.job(40), job_id=None), Rule.BAD_ID),
    "a job id that is a path": (replace(JOB.job(40), job_id="../../etc"), Rule.BAD_ID),
    "an unknown kind": (JOB.record(40, "jars", "{}"), Rule.UNKNOWN_KIND),
    "the same job reply again": (JOB.job(-30), Rule.NOT_NEWER),
    "the same metrics again": (JOB.metrics(30, taken=90.0), Rule.NOT_NEWER),
    "an overview without slots": (JOB.record(40, Endpoint.OVERVIEW, {"slots-total": None}), Rule.MISSING_FIELD),
}


@pytest.mark.parametrize("name", BAD)
def test_a_reply_that_cannot_be_used_harms_only_itself(name):
    record, rule = BAD[name]
    made = PollHistory({"c": 60})
    (fault,) = made.add([*polls(JOB), record, *polls(OTHER)])
    assert (fault.cluster, fault.rule) == ("c", rule)
    assert fault.job in {"orders", "", "f" * 32, "../../etc"}
    assert fault.detail.startswith(f"{record.kind}: ")
    assert len(fault.detail) < 300
    assert fault.detail.isprintable()
    assert rates(made) == {"orders": [3.0], "rides": [3.0]}
    assert made.jobs()[0].running == {SOURCE: 1, WORK: 2}


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (-1.0, Rule.VALUE_NEGATIVE),
        (1e16, Rule.VALUE_HUGE),
        (10**400, Rule.VALUE_HUGE),
        ("1e999", Rule.VALUE_HUGE),
        ("NaN", Rule.VALUE_NAN),
        (float("nan"), Rule.VALUE_NAN),
        (float("inf"), Rule.VALUE_HUGE),
        ("many", Rule.WRONG_TYPE),
        ("1_000", Rule.WRONG_TYPE),
        (True, Rule.WRONG_TYPE),
        ([1.0], Rule.WRONG_TYPE),
    ],
)
def test_a_value_that_breaks_a_rule_is_left_out_alone(value, rule):
    """Of three polls the middle one has no usable count; its busy time is used all the same."""
    made = PollHistory({"c": 60})
    body = [metric("numRecordsIn", 0.0, sum=value), metric("accumulateBusyTimeMs", 10_000.0, 2)]
    records = [
        *JOB.start(),
        JOB.metrics(0, taken=0.0, busy_ms=0.0),
        JOB.record(20, Endpoint.VERTEX_METRICS, body, VERTEX),
        JOB.metrics(40, taken=400.0, busy_ms=30_000.0),
    ]
    (fault,) = made.add(records)
    assert (fault.job, fault.rule) == ("orders", rule)
    assert f"vertex {VERTEX}: numRecordsIn.sum = " in fault.detail
    observed = made.windows(T0_S + 60).observations(0)
    assert observed.busy_share[0, 1] == pytest.approx(0.75)
    assert str(observed.processing_rate_per_s[0, 1]) == "nan"  # no two counts in a row


@pytest.mark.parametrize("value", ["NaN", None])
def test_a_share_that_flink_did_not_measure_is_no_fault(value):
    made = PollHistory({"c": 60})
    assert made.add([*polls(JOB), JOB.metrics(40, taken=120.0, busyTimeMsPerSecond=value)]) == []


def test_a_share_above_what_can_be_is_a_fault():
    made = PollHistory({"c": 60})
    result = made.add([*polls(JOB), JOB.metrics(40, taken=120.0, busyTimeMsPerSecond=1051.0)])
    assert {fault.rule for fault in result} == {Rule.VALUE_HUGE}
    assert rates(made) == {"orders": [3.0]}


def test_numbers_may_come_as_text_or_whole():
    made = PollHistory({"c": 60})
    assert made.add([*JOB.start(), JOB.metrics(0, taken=0), JOB.metrics(30, taken="90")]) == []
    assert rates(made) == {"orders": [3.0]}


def test_a_vertex_without_metrics_is_no_fault_and_no_sample():
    made = PollHistory({"c": 60})
    assert made.add([*polls(JOB), JOB.record(40, Endpoint.VERTEX_METRICS, "[]", VERTEX)]) == []
    assert made.windows(T0_S + 60).samples.tolist() == [0, 2]


STRANGE = [
    "Foo$$Lambda$14/0x00$x",
    'it\'s "quoted" `so`',
    "<script>alert(1)</script>",
    "sink \N{PILE OF POO}",
    "line\nbreak\tand \x00 zero",
    "n" * 4096,
    "a/b, c",
    "пример",
]


@pytest.mark.parametrize("name", STRANGE)
def test_strange_names_are_names(name):
    job = Job(name=name, vertices={SOURCE: "1" * 32, name: "2" * 32}, parallelism={SOURCE: 1, name: 2})
    made = PollHistory({"c": 60})
    assert made.add([*job.start(), *[job.metrics(at, name, taken=3.0 * at) for at in (0, 30)]]) == []
    (observed,) = made.jobs()
    assert (observed.job, observed.running) == (name, {SOURCE: 1, name: 2})
    assert rates(made) == {name: [3.0]}


def test_half_of_a_surrogate_pair_can_be_written():
    text = json.dumps({**JOB.body(), "name": "x\ud83d"})
    made = PollHistory({"c": 60})
    assert made.add([JOB.record(0, Endpoint.JOB, text)]) == []
    assert made.jobs()[0].job.encode() == b"x?"


def test_two_vertices_of_one_name_are_told_apart_by_their_ids():
    body = JOB.body()
    body["vertices"][0]["name"] = WORK
    made = PollHistory({"c": 60})
    assert made.add([JOB.record(-30, Endpoint.JOB, body), JOB.plan(-29), *polls(JOB)[2:]]) == []
    (observed,) = made.jobs()
    assert observed.running == {f"{WORK} (11111111)": 1, f"{WORK} (22222222)": 2}
    assert rates(made) == {"orders": [3.0]}


def test_a_vertex_without_a_name_is_named_by_its_id():
    made = PollHistory({"c": 60})
    result = made.add([JOB.record(-30, Endpoint.JOB, vertex_body(name=None)), JOB.plan(-29), *polls(JOB)[2:]])
    assert [(fault.rule, fault.detail) for fault in result] == [
        (Rule.MISSING_FIELD, f"job: name of vertex {VERTEX}"),
    ]
    assert made.jobs()[0].running == {SOURCE: 1, "(22222222)": 2}
    assert rates(made) == {"orders": [3.0]}


def test_one_finished_vertex_does_not_stop_the_job():
    body = JOB.body()
    body["vertices"][0]["status"] = "FINISHED"
    made = PollHistory({"c": 60})
    assert made.add([JOB.record(-30, Endpoint.JOB, body), JOB.plan(-29), *polls(JOB)[2:]]) == []
    (observed,) = made.jobs()
    assert (observed.is_up, observed.finished, observed.running) == (True, frozenset({SOURCE}), {SOURCE: 1, WORK: 2})
    assert rates(made) == {"orders": [3.0]}


@pytest.mark.parametrize(
    "nodes",
    [
        [{"id": "1" * 32, "inputs": [{"id": "2" * 32}]}, {"id": "2" * 32, "inputs": [{"id": "1" * 32}]}],
        [{"id": "1" * 32, "inputs": [{"id": "9" * 32}]}, {"id": "2" * 32}],
        [{"id": "9" * 32}],
    ],
)
def test_what_is_no_graph_leaves_the_job_without_one(nodes):
    made = PollHistory({"c": 60})
    plan = JOB.record(-29, Endpoint.PLAN, {"plan": {"nodes": nodes}})
    (fault,) = made.add([JOB.job(-30), plan, *polls(JOB)[2:], *polls(OTHER)])
    assert (fault.job, fault.rule) == ("orders", Rule.BAD_GRAPH)
    assert [job.graph is None for job in made.jobs()] == [True, False]
    assert rates(made) == {"orders": [3.0], "rides": [3.0]}


def test_the_plan_that_a_job_reply_holds_is_enough():
    """A new job is known from its first poll: its plan is asked for only once an hour."""
    plan = json.loads(JOB.plan(0).body)
    made = PollHistory({"c": 60})
    assert made.add([JOB.job(0, **plan)]) == []
    (observed,) = made.jobs()
    assert observed.graph is not None
    assert observed.graph.sources == (SOURCE,)
    assert made.add([JOB.job(1, plan={"nodes": []})]) == []  # empty while the graph is built anew
    assert made.jobs()[0].graph == observed.graph


def test_a_plan_that_cannot_be_used_inside_of_a_job_reply_leaves_the_reply():
    made = PollHistory({"c": 60})
    (fault,) = made.add([JOB.job(0, plan={"nodes": None})])
    assert fault.rule is Rule.MISSING_FIELD
    assert made.jobs()[0].running == {SOURCE: 1, WORK: 2}


def test_without_a_plan_a_source_is_known_by_its_name():
    made = PollHistory({"c": 60})
    assert made.add([JOB.job(-30), *[JOB.metrics(at, SOURCE, sent=2.0 * at) for at in (0, 30)]]) == []
    assert made.jobs()[0].graph is None
    assert made.windows(T0_S + 60).observations(0).target_data_rate_per_s.tolist()[0][0] == 2.0


def test_slots_of_a_cluster():
    made = PollHistory({"c": 60})
    record = replace(JOB.record(0, Endpoint.OVERVIEW, {"slots-total": 8, "slots-available": 3}), job_id=None)
    assert made.add([record]) == []
    assert (made.slots["c"].total, made.slots["c"].free) == (8, 3)
