"""The load job on a real Flink cluster: metrics, rescale, failure, end."""

import gzip
import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from waiting import is_running, wait_until

from include.flink.faults import FlinkRefusedError
from include.flink.job_states import RESTARTING_STATES
from include.flink.poller import RestSource
from include.flink.raw_format import Endpoint
from include.metric_sources.collection import collect_for
from include.settings import Cluster, Paths, Settings
from lab.local_flink.cluster import free_ports
from lab.local_flink.job_client import JobClient, ParallelismNotReachedError
from lab.local_flink.load import AGGREGATE, ENRICH, SINK, SOURCE, due_after

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).resolve().parents[2]


def poll(flink):
    return list(RestSource(flink.client, "live", time.time).poll().records)


def source_metrics(flink, records):
    (reply,) = (r for r in records if r.kind == Endpoint.VERTEX_METRICS and "pendingRecords" in r.endpoint)
    return {entry["id"]: entry for entry in json.loads(reply.body)}


def test_a_poll_has_every_kind_as_received(flink_cluster):
    records = poll(flink_cluster)
    assert {record.kind for record in records} == set(Endpoint) - {
        Endpoint.KAFKA_OFFSETS,
        Endpoint.RESCALE,
    }  # the latter from Flink 2.3 on
    assert {record.status for record in records} == {200}
    job = json.loads(next(record.body for record in records if record.kind == Endpoint.JOB))
    assert {vertex["name"] for vertex in job["vertices"]} == {SOURCE, ENRICH, AGGREGATE, SINK}
    assert sum(record.kind == Endpoint.VERTEX_METRICS for record in records) == 4


def test_the_source_owes_by_the_clock(flink_cluster):
    """Emitted + backlog is what the trace says is due, within the age of the metrics, at three polls in a row."""
    submitted_ms = flink_cluster.client.job(flink_cluster.job_id)["start-time"]
    options, in_a_row = flink_cluster.options, 0

    def owes_what_is_due():
        nonlocal in_a_row
        metrics = source_metrics(flink_cluster, poll(flink_cluster))
        elapsed_s = time.time() - submitted_ms / 1000
        (pending,) = (entry["sum"] for name, entry in metrics.items() if name.endswith(".pendingRecords"))
        owed = metrics["numRecordsOut"]["sum"] + pending
        is_due = due_after(elapsed_s - 3.5, options) <= owed <= due_after(elapsed_s + 0.5, options)
        in_a_row = in_a_row + 1 if is_due and elapsed_s > 8 else 0
        return in_a_row == 3

    assert wait_until(owes_what_is_due, 90)


def test_rescale_is_confirmed_and_restarts_the_counters(flink_cluster):
    client, job_id = flink_cluster.client, flink_cluster.job_id
    before = client.job(job_id)
    assert client.running_parallelism(job_id)[ENRICH] == 1
    sent = client.set_parallelism(job_id, {ENRICH: 2})
    assert sent == {SOURCE: 1, ENRICH: 2, AGGREGATE: 1, SINK: 1}
    confirmed = client.wait_for_parallelism(job_id, {ENRICH: 2}, timeout_s=60)
    assert confirmed.parallelism == {SOURCE: 1, ENRICH: 2, AGGREGATE: 1, SINK: 1}
    after = client.job(job_id)
    assert after["timestamps"]["RUNNING"] > before["timestamps"]["RUNNING"]
    assert after["start-time"] == before["start-time"]
    assert {v["id"] for v in after["vertices"]} == {v["id"] for v in before["vertices"]}
    # The JobManager serves metrics that are up to a fetch interval old, and a new attempt registers its own first.
    assert wait_until(lambda: int(client.job_metrics(job_id).get("numRescales", 0)) >= 1)


def test_what_flink_cannot_do_is_told(flink_cluster):
    client, job_id = flink_cluster.client, flink_cluster.job_id
    with pytest.raises(FlinkRefusedError, match="maximum parallelism"):
        client.set_parallelism(job_id, {ENRICH: 1000})
    # More than the slots: accepted with 200, so only the confirmation shows that it is not so.
    client.set_parallelism(job_id, {ENRICH: 100})
    with pytest.raises(ParallelismNotReachedError, match="enough slots"):
        client.wait_for_parallelism(job_id, {ENRICH: 100}, timeout_s=8)
    client.set_parallelism(job_id, {ENRICH: 1})
    client.wait_for_parallelism(job_id, {ENRICH: 1}, timeout_s=60)


def test_the_job_survives_its_taskmanager_and_replays(flink_cluster):
    client, job_id = flink_cluster.client, flink_cluster.job_id
    started = client.job(job_id)["timestamps"]["RUNNING"]
    assert wait_until(lambda: client.checkpoints(job_id)["latest"]["completed"])  # to replay from
    flink_cluster.cluster.kill_taskmanager()
    wait_until(lambda: not client.running_parallelism(job_id), within_s=40)
    assert client.running_parallelism(job_id) == {}
    outage = poll(flink_cluster)  # whatever Flink says now is recorded
    assert json.loads(next(r.body for r in outage if r.kind == Endpoint.JOB))["state"] in {"RESTARTING", "CREATED"}
    flink_cluster.cluster.start_taskmanager()
    client.wait_for_parallelism(job_id, {}, timeout_s=60)
    assert client.job(job_id)["timestamps"]["RUNNING"] > started

    def counted_the_failure():
        metrics = client.job_metrics(job_id)
        return int(metrics["numRestarts"]) > int(metrics["numRescales"])

    assert wait_until(counted_the_failure)
    assert client.checkpoints(job_id)["latest"]["restored"] is not None


def test_a_job_that_restarts_comes_back_with_what_was_asked_for_meanwhile(flink_cluster):
    """What the reactive controller counts on: the change needs no stop of its own."""
    client, job_id = flink_cluster.client, flink_cluster.job_id
    before = client.job_metrics(job_id)
    target = {SOURCE: 1, ENRICH: 2, AGGREGATE: 1, SINK: 1}
    flink_cluster.cluster.kill_taskmanager()
    assert wait_until(lambda: client.job(job_id)["state"] in RESTARTING_STATES)
    assert client.set_parallelism(job_id, {ENRICH: 2}) == target
    flink_cluster.cluster.start_taskmanager()
    assert client.wait_for_parallelism(job_id, target, timeout_s=90).parallelism == target
    assert wait_until(lambda: int(client.job_metrics(job_id)["numRestarts"]) > int(before["numRestarts"]))
    after = client.job_metrics(job_id)
    assert int(after["numRestarts"]) == int(before["numRestarts"]) + 1
    assert int(after["numRescales"]) == int(before["numRescales"])
    client.set_parallelism(job_id, {ENRICH: 1})
    client.wait_for_parallelism(job_id, {ENRICH: 1}, timeout_s=60)


def test_collecting_writes_the_live_cluster_and_names_the_dead_one(flink_cluster, tmp_path):
    settings = Settings(
        paths=Paths(raw=str(tmp_path)),
        clusters={"dead": Cluster(rest_url="http://127.0.0.1:1"), "live": Cluster(rest_url=flink_cluster.rest_url)},
    )
    delivery = collect_for(settings, 0.0)
    assert list(delivery.refused) == ["dead"]
    (path,) = tmp_path.rglob("*.gz")
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    assert len(lines) == delivery.records
    assert {line["cluster"] for line in lines} == {"live"}


@pytest.mark.long
def test_an_interrupted_demo_leaves_no_process(tmp_path):
    """``python -m tools.cluster``: Ctrl-C ends it, and so does SIGKILL (the kernel ends its children)."""
    for stop in (signal.SIGINT, signal.SIGKILL):
        demo = subprocess.Popen(
            [sys.executable, "-m", "tools.cluster", "--work-dir", str(tmp_path / stop.name)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert demo.stdout is not None
        rest_url = next(line.split(" = ")[1].strip() for line in demo.stdout if line.startswith("rest_url"))
        assert JobClient(rest_url).overview()["taskmanagers"] == 1
        children = [int(pid) for pid in Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text().split()]
        assert len(children) == 2
        demo.send_signal(stop)
        assert demo.wait(30) == (0 if stop == signal.SIGINT else -signal.SIGKILL)
        assert wait_until(lambda left=children: not any(map(is_running, left)), 20)


@pytest.mark.long
def test_the_whole_demo_shows_its_job_and_leaves_no_process(tmp_path):
    """``make demo``: the page knows the job once the controller has looked at it; Ctrl-C ends all of it."""
    (port,) = free_ports(1)
    demo = subprocess.Popen(
        [sys.executable, "-m", "lab.commands.demo", "--out", str(tmp_path), "--port", str(port), "--mode", "dry-run"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert demo.stdout is not None
        assert any("Ctrl-C stops everything" in line for line in demo.stdout)
        children = [one.pid for one in psutil.Process(demo.pid).children(recursive=True)]
        assert len(children) >= 4  # two of Flink, the controller, the page

        def shows_job() -> bool:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as reply:
                return "demo/orders" in reply.read().decode()

        assert wait_until(shows_job, 180, 2)
    finally:
        demo.send_signal(signal.SIGINT)
        assert demo.wait(60) == 0
    assert wait_until(lambda: not any(map(is_running, children)), 20)


@pytest.mark.long
def test_a_recording_ended_early_keeps_what_it_has_and_replaces_nothing(tmp_path):
    out = tmp_path / "recording"
    out.mkdir()
    (out / "README.md").write_text("the recording before")
    command = [sys.executable, "-m", "tools.record", "--minutes", "5", "--out", str(out), "--poll-every-s", "1"]
    recording = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    partial = tmp_path / "recording.partial"
    assert recording.stdout is not None
    assert any(line.startswith("recording http") for line in recording.stdout)
    time.sleep(6)  # for some polls: until it ends they are kept in memory, where nothing shows them
    recording.send_signal(signal.SIGINT)
    predicted = recording.communicate(timeout=60)[0]
    assert recording.returncode == 130, predicted
    assert (out / "README.md").read_text() == "the recording before"
    (file,) = partial.rglob("*.jsonl.gz")
    kinds = {json.loads(line)["kind"] for line in gzip.decompress(file.read_bytes()).decode().splitlines()}
    assert kinds == {str(kind) for kind in set(Endpoint) - {Endpoint.KAFKA_OFFSETS, Endpoint.RESCALE}}
    assert "ended early" in (partial / "README.md").read_text()
