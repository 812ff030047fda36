"""What a poll of a cluster records, over replies of a real cluster; the live poll is in tests/live."""

import gzip
import json
import logging
from functools import reduce
from operator import add

import pytest
from held_objects import count_held

from include.flink.faults import FlinkUnreachableError
from include.flink.poller import RestSource, deliver
from include.flink.transport import Reply
from include.metric_sources.collection import collect_for
from include.settings import Cluster, Paths, Settings

JOB, SOURCE, SINK = "a" * 32, "b" * 32, "c" * 32
LISTING = f"/jobs/{JOB}/vertices/%s/subtasks/metrics"
COMMON = [
    *("numRecordsIn", "numRecordsOut", "numRecordsInPerSecond", "numRecordsOutPerSecond"),
    *("busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond"),
    *("accumulateBusyTimeMs", "accumulateIdleTimeMs", "accumulateBackPressuredTimeMs"),
]


class Replies:
    """Stands for client and transport: a reply per path without its query; 404 for a path that it has not."""

    def __init__(self, state="RUNNING"):
        job = {
            "state": state,
            "start-time": 5,
            "vertices": [{"id": SOURCE}, {"id": SINK}],
            "plan": {"nodes": [{"id": SOURCE}, {"id": SINK, "inputs": [{"id": SOURCE}]}]},
        }
        self.bodies = {
            "/overview": "{}",
            "/jobs/metrics": "[]",
            "/jobs/overview": json.dumps({"jobs": [{"jid": JOB, "state": state}]}),
            f"/jobs/{JOB}": json.dumps(job),
            **{f"/jobs/{JOB}/{leaf}": "{}" for leaf in ("metrics", "checkpoints", "exceptions")},
            f"/jobs/{JOB}/plan": json.dumps({"plan": job["plan"]}),
            LISTING % SOURCE: json.dumps([{"id": name} for name in [*COMMON, "Source__orders.pendingRecords"]]),
            LISTING % SINK: json.dumps([{"id": name} for name in [*COMMON, "other"]]),
        }
        self.asked = []
        self.transport = self

    def get(self, path):
        self.asked.append(path)
        body = self.bodies.get(path.split("?")[0])
        if body is None:
            return Reply(path, 404, '{"errors":["Not found"]}')
        return Reply(path, 200, body)


def source_over(replies, now=7200.0):
    clock = [now]
    return RestSource(replies, "prod", lambda: clock[0], sleep=lambda _: None), clock


def kinds(records):
    return [record.kind for record in records]


def test_a_poll_has_every_kind_once_and_metrics_of_every_vertex():
    source, _ = source_over(Replies())
    records = source.poll().records
    assert kinds(records) == [
        *("overview", "job", "plan", "job_metrics", "checkpoints", "exceptions"),
        *("vertex_metrics", "vertex_metrics"),
    ]
    assert [record.vertex_id for record in records[-2:]] == [SOURCE, SINK]
    assert {record.observed_at_ms for record in records} == {7_200_000}
    assert {record.cluster for record in records} == {"prod"}
    assert records[1].body == Replies().bodies[f"/jobs/{JOB}"]


def test_the_backlog_is_asked_of_the_source_by_the_name_it_has_there():
    source, _ = source_over(Replies())
    of_source, of_sink = source.poll().records[-2:]
    assert "Source__orders.pendingRecords" in of_source.endpoint
    assert "pendingRecords" not in of_sink.endpoint
    assert "other" not in of_sink.endpoint


def test_the_watermark_is_asked_of_a_task_that_has_one_and_of_no_operator_in_it():
    replies = Replies()
    for vertex, name in ((SOURCE, "Calc.currentInputWatermark"), (SINK, "currentInputWatermark")):
        replies.bodies[LISTING % vertex] = json.dumps([{"id": one} for one in [*COMMON, name]])
    of_source, of_sink = source_over(replies)[0].poll().records[-2:]
    assert "Watermark" not in of_source.endpoint
    assert ",currentInputWatermark&" in of_sink.endpoint


def test_only_names_that_exist_are_asked_for():
    replies = Replies()
    replies.bodies[LISTING % SINK] = json.dumps([{"id": "numRecordsIn"}])  # an older Flink, or a task still starting
    source, _ = source_over(replies)
    assert "get=numRecordsIn&" in source.poll().records[-1].endpoint


def test_the_list_of_names_is_asked_for_again_until_it_is_complete():
    replies = Replies()
    replies.bodies[LISTING % SINK] = "[]"
    source, _ = source_over(replies)
    source.poll()
    replies.bodies[LISTING % SINK] = json.dumps([{"id": name} for name in COMMON])  # its operators still start
    source.poll()
    replies.bodies[LISTING % SINK] = json.dumps([{"id": name} for name in [*COMMON, "currentInputWatermark"]])
    for _ in range(3):
        last = source.poll().records[-1]
    assert replies.asked.count(LISTING % SOURCE) == 1
    assert replies.asked.count(LISTING % SINK) == 3
    assert ",currentInputWatermark&" in last.endpoint


def test_the_list_of_a_source_that_reports_no_backlog_is_asked_for_at_its_start_and_once_an_hour():
    replies = Replies()
    replies.bodies[LISTING % SOURCE] = json.dumps([{"id": name} for name in COMMON])
    source, clock = source_over(replies)
    for _ in range(60):
        last = source.poll().records[-2]
    asked = replies.asked.count(LISTING % SOURCE)
    assert 1 < asked < 30
    assert "numRecordsIn" in last.endpoint
    clock[0] += 3600
    replies.bodies[LISTING % SOURCE] = json.dumps([{"id": name} for name in [*COMMON, "Source__orders.pendingRecords"]])
    assert "Source__orders.pendingRecords" in source.poll().records[-2].endpoint
    assert replies.asked.count(LISTING % SOURCE) == asked + 1


def test_a_source_shows_its_backlog_although_the_job_had_no_plan_when_it_was_first_polled():
    replies = Replies()
    whole = replies.bodies[f"/jobs/{JOB}"]
    replies.bodies[f"/jobs/{JOB}"] = json.dumps({**json.loads(whole), "plan": {"jid": "", "name": "", "nodes": []}})
    replies.bodies[LISTING % SOURCE] = json.dumps([{"id": name} for name in COMMON])
    source, _ = source_over(replies)
    source.poll()
    replies.bodies[LISTING % SOURCE] = json.dumps([{"id": name} for name in [*COMMON, "Source__orders.pendingRecords"]])
    assert "Source__orders.pendingRecords" in source.poll().records[-2].endpoint
    replies.bodies[f"/jobs/{JOB}"] = whole
    for _ in range(2):
        of_source, of_sink = source.poll().records[-2:]
        assert "Source__orders.pendingRecords" in of_source.endpoint
        assert "pendingRecords" not in of_sink.endpoint


def test_the_plan_comes_once_an_hour_and_after_a_new_start():
    replies = Replies()
    source, clock = source_over(replies)
    assert "plan" in kinds(source.poll().records)
    clock[0] += 3599
    assert "plan" not in kinds(source.poll().records)
    clock[0] += 1
    assert "plan" in kinds(source.poll().records)
    replies.bodies[f"/jobs/{JOB}"] = replies.bodies[f"/jobs/{JOB}"].replace('"start-time": 5', '"start-time": 6')
    assert "plan" in kinds(source.poll().records)


def test_the_plan_of_a_job_that_initialises_is_asked_for_again():
    replies = Replies()
    plan = replies.bodies[f"/jobs/{JOB}/plan"]
    replies.bodies[f"/jobs/{JOB}/plan"] = '{"plan":{"jid":"","name":"","type":"","nodes":[]}}'
    source, _ = source_over(replies)
    assert "plan" in kinds(source.poll().records)
    replies.bodies[f"/jobs/{JOB}/plan"] = plan
    assert "plan" in kinds(source.poll().records)
    assert "plan" not in kinds(source.poll().records)


def test_the_end_of_a_job_is_kept_once():
    replies = Replies()
    source, _ = source_over(replies)
    source.poll()
    for path in ("/jobs/overview", f"/jobs/{JOB}"):
        replies.bodies[path] = replies.bodies[path].replace("RUNNING", "FINISHED")
    assert kinds(source.poll().records) == ["overview", "job", "checkpoints"]
    assert kinds(source.poll().records) == ["overview"]


def test_replies_that_are_errors_or_corrupt_are_kept_as_received():
    replies = Replies()
    replies.bodies[f"/jobs/{JOB}"] = '{"state": "RUNN'
    del replies.bodies[f"/jobs/{JOB}/checkpoints"]
    source, _ = source_over(replies)
    records = {record.kind: record for record in source.poll().records}
    assert records["job"].body == '{"state": "RUNN'
    assert (records["checkpoints"].status, records["checkpoints"].body) == (404, '{"errors":["Not found"]}')
    assert "vertex_metrics" not in records  # no vertex is known without the job's reply


@pytest.mark.parametrize(("state", "polled"), [("RESTARTING", True), ("CREATED", True), ("FINISHED", False)])
def test_only_jobs_that_have_not_ended_are_polled(state, polled):
    source, _ = source_over(Replies(state))
    assert ("job" in kinds(source.poll().records)) is polled


def test_deliver_writes_one_file_into_the_present_hour(tmp_path):
    source, _ = source_over(Replies(), now=1_795_203_082.5)
    delivery = deliver(source.poll(), "prod", tmp_path, 1_795_203_082.5)
    (path,) = tmp_path.rglob("*.gz")
    assert path.parent == tmp_path / "cluster=prod/date=2026-11-20/hour=19"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    assert (delivery.written, delivery.records) == (1, len(lines)) == (1, 8)
    assert json.loads(lines[0])["kind"] == "overview"


def test_what_the_polls_of_months_brought_is_counted_and_no_list_that_grows(tmp_path):
    poll = source_over(Replies())[0].poll()
    total = reduce(add, [deliver(poll, "prod", tmp_path, 7200.0 + second) for second in range(50)])
    assert (total.written, total.records) == (50, 400)
    assert count_held(total) == count_held(deliver(poll, "prod", tmp_path, 0.0))


def test_an_application_that_is_deployed_anew_with_the_same_id_leaves_no_vertex_behind():
    replies = Replies()
    source, _ = source_over(replies)
    job, held = replies.bodies[f"/jobs/{JOB}"], list[int]()
    for number in range(1, 9):
        vertex = f"{number:032x}"
        replies.bodies[f"/jobs/{JOB}"] = job.replace(SINK, vertex)
        replies.bodies[LISTING % vertex] = replies.bodies[LISTING % SINK]
        assert source.poll().records[-1].vertex_id == vertex
        del replies.bodies[LISTING % vertex]
        replies.asked.clear()
        held.append(count_held(source))
    assert held[-1] <= held[2]


def test_an_unreachable_cluster_is_named_and_does_not_stop_the_others(tmp_path, monkeypatch, caplog):
    def client(rest_url, cluster, connection):
        replies = Replies()
        if rest_url.endswith(":1"):
            replies.get = lambda path: (_ for _ in ()).throw(FlinkUnreachableError(rest_url, 3, "ConnectionError"))
        replies.close = replies.stop = lambda: None
        return replies

    monkeypatch.setattr("include.metric_sources.live_sources.FlinkClient", client)
    settings = Settings(
        paths=Paths(raw=str(tmp_path)),
        clusters={
            "down": Cluster(rest_url="http://127.0.0.1:1"),
            "files-only": Cluster(),
            "up": Cluster(rest_url="http://127.0.0.1:2"),
        },
    )
    with caplog.at_level(logging.ERROR):
        delivery = collect_for(settings, 0.0, lambda: 7200.0)
    assert [path.name for path in tmp_path.iterdir()] == ["cluster=up"]
    assert list(delivery.refused) == ["down"]
    assert "cluster down: nothing collected" in caplog.text


JUNK = [
    *(None, True, 0, -1, 0.5, 10**30, "", "x", "\ud83d", "../..", [], {}, [None], [[]], {"id": None}, {"nodes": 5}),
    *('"', '{"jobs": [', "<html>", "[" * 10_000, "1" * 5000, "NaN"),
]


def places(found, at=()):
    """Every place inside a reply."""
    yield at
    inside = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in inside:
        yield from places(value, (*at, key))


def with_junk(body, at, junk):
    result = json.loads(body)
    if not at:
        return junk if isinstance(junk, str) else json.dumps(junk)
    inside = result
    for key in at[:-1]:
        inside = inside[key]
    inside[at[-1]] = junk
    return json.dumps(result)


@pytest.mark.covers("apply_review 16")
@pytest.mark.parametrize("path", ["/overview", "/jobs/overview", f"/jobs/{JOB}", LISTING % SOURCE])
def test_junk_in_any_place_of_a_reply_ends_no_poll(path, caplog):
    """The second job of the cluster is polled whatever is in the first one's replies."""
    other = "f" * 32
    for at in list(places(json.loads(Replies().bodies[path]))):
        for junk in JUNK:
            replies = Replies()
            listed = {"jobs": [{"jid": JOB, "state": "RUNNING"}, {"jid": other, "state": "RUNNING"}]}
            replies.bodies["/jobs/overview"] = json.dumps(listed)
            for name, body in list(replies.bodies.items()):
                replies.bodies[name.replace(JOB, other)] = body
            replies.bodies[path] = with_junk(replies.bodies[path], at, junk)
            source, _ = source_over(replies)
            poll = source.poll()
            of_other = [record for record in poll.records if record.job_id == other]
            assert len(of_other) == 7 or path == "/jobs/overview"
            assert all(len(fault) < 300 for fault in poll.faults)
    assert not [record for record in caplog.records if record.exc_info], "junk is no error of our own"
