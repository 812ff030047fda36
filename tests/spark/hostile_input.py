"""Raw files as strangers made them: each case is one cluster, beside a cluster that is sound."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from include.flink.raw_format import Endpoint, hour_directory
from include.settings import Cluster
from tests.spark.raw_builders import (
    HOUR,
    JOB_ID,
    SINK,
    SOURCE,
    START,
    VERTEX_IDS,
    WORK,
    PolledJob,
    checkpoints_body,
    exceptions_body,
    job_body,
    metric,
    ms,
    plan_body,
    record,
    write,
)

OTHER_ID = "b" * 32
WINDOWS = 12  # of an hour
NAMES = {SOURCE: "x", WORK: "x", SINK: "x (11111111)"}
ODD_NAMES = ["a[1].jsonl.gz", "b{2,3}.jsonl.gz", "c\\4.jsonl.gz", "d:5.jsonl.gz", "e*+%41 ?.jsonl.gz", "f\n.jsonl.gz"]
LATIN = os.fsdecode(b"caf\xe9.jsonl.gz")


def polled(cluster: str, **options: Any) -> PolledJob:
    return PolledJob(running_at=START - HOUR, cluster=cluster, **options)


def at(minute: float) -> Any:
    return START + timedelta(minutes=minute)


def renamed(line: str, names: dict[str, str | None]) -> str:
    """Give the vertices of a job reply other names; None takes the name away."""
    envelope = json.loads(line)
    if envelope["kind"] != Endpoint.JOB:
        return line
    body = json.loads(envelope["body"])
    for vertex in body["vertices"]:
        vertex["name"] = names[vertex["name"]]
        if vertex["name"] is None:
            del vertex["name"]
    return json.dumps({**envelope, "body": json.dumps(body)}, separators=(",", ":"))


def job_line(cluster: str, minute: float, change: Callable[[dict[str, Any]], object], **options: Any) -> str:
    """A job reply at some minute that was changed."""
    body = job_body({SOURCE: 1, WORK: 2, SINK: 1}, START - HOUR, **options)
    change(body)
    return record(at(minute), Endpoint.JOB, body, cluster=cluster)


def write_bad_replies(raw: Path) -> None:
    cluster = "replies"

    def without_id(body: dict[str, Any]) -> None:
        body["plan"] = plan_body()["plan"]
        body["vertices"][1]["id"] = None

    def stamped(**times: int) -> Callable[[dict[str, Any]], object]:
        return lambda body: body["timestamps"].update(times)

    year_9999, in_seconds = 253_402_300_000_000, int(START.timestamp())
    checkpoints = checkpoints_body(at(20), START + timedelta(days=400))
    failures = exceptions_body((START + timedelta(days=400), "lost"))
    lines = [
        *polled(cluster).hour(START),
        job_line(cluster, 21, without_id),
        job_line(cluster, 22, lambda body: body["vertices"][1].pop("id")),
        job_line(cluster, 23, lambda body: body["vertices"][1].update(id=body["vertices"][0]["id"])),
        job_line(cluster, 24, lambda body: body["vertices"][1].update(id="short")),
        job_line(cluster, 25, lambda body: body.update(jid=OTHER_ID)),
        job_line(cluster, 26, lambda body: body.update(name="")),
        job_line(cluster, 59.9, stamped(RUNNING=year_9999)),
        job_line(cluster, 59.91, stamped(RUNNING=1000 * ms(START))),
        job_line(cluster, 59.92, stamped(RUNNING=in_seconds)),
        job_line(cluster, 59.93, stamped(FAILED=year_9999)),
        record(at(40), Endpoint.CHECKPOINTS, checkpoints, cluster=cluster),
        record(at(41), Endpoint.EXCEPTIONS, failures, cluster=cluster),
        record(
            at(42),
            Endpoint.PLAN,
            plan_body({SOURCE: [], WORK: [SOURCE], SINK: ["gone"]}, {**VERTEX_IDS, "gone": "9" * 32}),
            cluster=cluster,
        ),
        record(at(43), Endpoint.JOB_METRICS, '[{"id":"uptime"}] [1]', cluster=cluster),
        record(at(44), Endpoint.JOB, '{"name":"a"}{"name":"b"}', cluster=cluster),
        record(at(45), Endpoint.CHECKPOINTS, "[]", cluster=cluster),
    ]
    write(raw, START, lines, cluster=cluster)


BAD_REPLIES = {
    "wrong_type": 4,
    "bad_id": 1,
    "job_mismatch": 1,
    "missing_field": 1,
    "time_out_of_range": 6,
    "bad_graph": 1,
    "malformed_json": 2,
}


def write_bad_lines(raw: Path) -> None:
    cluster = "lines"
    job = polled(cluster)
    one, two = job.vertex_line(WORK, at(31)), job.vertex_line(WORK, at(32))
    joined = [one + between + two for between in ("", " ", "\t", ",", " , ")]
    torn = [one[:50]] * 3
    lines = [line.encode() for line in [*job.hour(START), *joined, *torn]]
    invalid = b'{"observed_at_ms":1,"note":"caf\xe9"}'
    path = hour_directory(raw, cluster, START) / "a.jsonl.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(b"\n".join([*lines, invalid, b"", invalid]), mtime=0))


def write_odd_files(raw: Path) -> None:
    cluster = "files"
    lines = polled(cluster).hour(START)
    names = [*ODD_NAMES, LATIN]
    for number, name in enumerate(names):
        write(raw, START, lines[number :: len(names)], cluster=cluster, name=name)
    hour = hour_directory(raw, cluster, START)
    (hour / "gone.jsonl.gz").symlink_to("nowhere")
    (hour / "loop.jsonl.gz").symlink_to("loop.jsonl.gz")
    os.mkfifo(hour / "pipe.jsonl.gz")
    (hour / "folder.jsonl.gz").mkdir()
    for name in ("b.json.gz", "B.JSONL.GZ", "c.jsonl.zip"):
        (hour / name).write_bytes(b"x")
    (hour / ".d.jsonl.gz.tmp").write_bytes(b"x")  # a writer's
    (hour.parent / "hour=24").mkdir()
    (hour.parent / "hour=9").symlink_to(hour.parent)
    (hour.parent.parent / "Date=2026-11-20").mkdir()
    (hour.parent.parent / "date=2026-11-31").mkdir()
    (raw / "CLUSTER=files").mkdir()


MISPLACED = {
    "cluster=files/date=2026-11-20/hour=10/folder.jsonl.gz",
    "cluster=files/date=2026-11-20/hour=10/b.json.gz",
    "cluster=files/date=2026-11-20/hour=10/B.JSONL.GZ",
    "cluster=files/date=2026-11-20/hour=10/c.jsonl.zip",
    "cluster=files/date=2026-11-20/hour=24",
    "cluster=files/date=2026-11-20/hour=9",
    "cluster=files/Date=2026-11-20",
    "cluster=files/date=2026-11-31",
    "CLUSTER=files",
}


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[3 * len(content) // 4] ^= 0x10
    path.write_bytes(bytes(content))


def held_up(job: PolledJob, line: str) -> str:
    """Take the backlog away, and let the source of a job wait for its outputs."""
    envelope = json.loads(line)
    if envelope["vertex_id"] != VERTEX_IDS[SOURCE]:
        return line
    retained = [one for one in json.loads(envelope["body"]) if "pending" not in one["id"] and "Time" not in one["id"]]
    shares = {"busy": 10.0, "idle": 10.0, "backPressured": 980.0}
    body = [*retained, *(metric(f"{name}TimeMsPerSecond", share) for name, share in shares.items())]
    return json.dumps({**envelope, "body": json.dumps(body)})


def unmeasured(line: str) -> str:
    """Take the time shares of a vertex away."""
    envelope = json.loads(line)
    if envelope["vertex_id"] != VERTEX_IDS[WORK]:
        return line
    body = [one for one in json.loads(envelope["body"]) if "Time" not in one["id"]]
    return json.dumps({**envelope, "body": json.dumps(body)})


def write_hostile_input(raw: Path) -> dict[str, Cluster]:
    """Write all clusters below a raw root; returns those that settings name."""
    write(raw, START, polled("good").hour(START), cluster="good")
    write_bad_replies(raw)
    write_bad_lines(raw)
    write_odd_files(raw)
    named = [renamed(line, NAMES) for line in polled("names").hour(START)]
    write(raw, START, named, cluster="names")
    nameless = [renamed(line, {SOURCE: SOURCE, WORK: None, SINK: ""}) for line in polled("nameless").hour(START)]
    write(raw, START, nameless, cluster="nameless")
    extra = job_line("othername", 27, lambda body: body.update(name="other"))
    write(raw, START, [*polled("othername").hour(START), extra], cluster="othername")
    twins = polled("twins").hour(START)
    slower = [line.replace(JOB_ID, OTHER_ID) for line in polled("twins", rate_per_s=40.0).hour(START)]
    write(raw, START, [*twins, *slower], cluster="twins")
    # Redeployed under a new id at eleven: a chain has one more operator.
    chain = {SOURCE: f"{SOURCE} -> parse", WORK: WORK, SINK: SINK}
    write(raw, START, polled("redeployed").hour(START), cluster="redeployed")
    began = START + HOUR + timedelta(seconds=30)
    second = PolledJob(running_at=began, cluster="redeployed", counts_operator=True).hour(START + HOUR)
    write(raw, START + HOUR, [renamed(line.replace(JOB_ID, OTHER_ID), chain) for line in second], cluster="redeployed")
    flip_bit(write(raw, START, polled("flipped").hour(START), cluster="flipped"))
    job = polled("held")
    write(raw, START, [held_up(job, line) for line in job.hour(START)], cluster="held")
    write(raw, START, [unmeasured(line) for line in polled("unmeasured").hour(START)], cluster="unmeasured")
    return {"good": Cluster(window_s=300)}
