"""The written history: the same bytes again, valid JSON with Flink's field names, counters that restart."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from include.flink.endpoints import AGGREGATES
from include.flink.raw_format import Endpoint, RawRecord
from include.utc import IntervalError
from lab.commands.history import RECOVERY_S, HistoryRequest, main, write_history
from lab.commands.simulated_jobs import load_simulated_jobs
from lab.simulation.rest.job_reply import build_hollow_details, build_job_reply, list_hole_values
from lab.simulation.rest.job_timeline import FIRST_START_MS
from lab.simulation.rest.metrics import POLLED
from lab.simulation.rest.template import Ids, build_template
from lab.simulation.spec import SpecError
from tools.raw_records import read_records

END = datetime(2026, 11, 20, 18, tzinfo=UTC)
HOURS = 15


def digest(raw: Path) -> dict[str, str]:
    return {str(p.relative_to(raw)): hashlib.sha256(p.read_bytes()).hexdigest() for p in raw.rglob("*.jsonl.gz")}


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("history")
    write_history(HistoryRequest(HOURS, END, root), workers=2)
    return root


@pytest.fixture(scope="module")
def records(raw: Path) -> list[RawRecord]:
    result = []
    for path in sorted(raw.rglob("*.jsonl.gz")):
        result += read_records(path)
    return result


def bodies(records: list[RawRecord], kind: Endpoint) -> list[tuple[RawRecord, Any]]:
    return [(record, json.loads(record.body)) for record in records if record.kind == kind]


def test_one_file_per_hour_ends_at_the_end(raw: Path, records: list[RawRecord]) -> None:
    files = sorted(raw.rglob("*.jsonl.gz"))
    assert len(files) == HOURS
    assert files[-1].parent.name == "hour=17"
    end_ms = END.timestamp() * 1000
    times = [record.observed_at_ms for record in records]
    assert end_ms - 10_000 <= max(times) < end_ms
    assert min(times) == end_ms - HOURS * 3_600_000 + 290_000


def test_a_line_lies_in_the_directory_of_its_hour(raw: Path) -> None:
    for path in raw.rglob("*.jsonl.gz"):
        hour = datetime.strptime(
            f"{path.parent.parent.name} {path.parent.name} +0000", "date=%Y-%m-%d hour=%H %z"
        ).timestamp()
        with gzip.open(path, "rt") as lines:
            assert {json.loads(line)["observed_at_ms"] // 3_600_000 for line in lines} == {int(hour) // 3600}


def test_the_same_request_gives_the_same_bytes_for_any_number_of_workers(raw: Path, tmp_path: Path) -> None:
    write_history(HistoryRequest(HOURS, END, tmp_path), workers=1)
    assert digest(tmp_path) == digest(raw)


def test_another_seed_gives_other_bytes(tmp_path: Path) -> None:
    for seed in (1, 2):
        write_history(HistoryRequest(2, END, tmp_path / str(seed), seed=seed), workers=1)
    first, second = digest(tmp_path / "1"), digest(tmp_path / "2")
    assert first.keys() == second.keys()
    assert not set(first.values()) & set(second.values())


def test_a_finished_history_is_kept_and_a_damaged_one_is_written_anew(tmp_path: Path) -> None:
    request = HistoryRequest(1, END, tmp_path)
    assert write_history(request, workers=1)["skipped"] is False
    before = digest(tmp_path)
    assert write_history(request, workers=1)["skipped"] is True
    victim = next(tmp_path.rglob("*.jsonl.gz"))
    victim.write_bytes(victim.read_bytes()[:100])
    assert write_history(request, workers=1)["skipped"] is False
    assert digest(tmp_path) == before
    next(tmp_path.rglob("*.manifest.json")).unlink()  # killed before its end
    assert write_history(request, workers=1)["skipped"] is False
    assert digest(tmp_path) == before


def test_a_shorter_history_leaves_nothing_of_the_longer_one(tmp_path: Path) -> None:
    write_history(HistoryRequest(3, END, tmp_path), workers=1)
    write_history(HistoryRequest(2, END, tmp_path), workers=1)
    assert len(digest(tmp_path)) == 2


def test_replies_have_flinks_fields(records: list[RawRecord]) -> None:
    fields = {
        Endpoint.JOB: {"jid", "name", "state", "start-time", "now", "timestamps", "vertices", "status-counts"},
        Endpoint.PLAN: {"plan"},
        Endpoint.CHECKPOINTS: {"counts", "summary", "latest", "history"},
        Endpoint.EXCEPTIONS: {"root-exception", "timestamp", "exceptionHistory"},
        Endpoint.OVERVIEW: {"taskmanagers", "slots-total", "slots-available", "jobs-running", "flink-version"},
    }
    for kind, names in fields.items():
        result = bodies(records, kind)
        assert result
        assert all(names <= set(body) for _, body in result)
    checkpoints = [body for _, body in bodies(records, Endpoint.CHECKPOINTS)]
    assert all(body["latest"]["completed"] == body["history"][0] for body in checkpoints)
    assert all(len({one["id"] for one in body["history"]}) == 10 for body in checkpoints)
    completed = checkpoints[0]["latest"]["completed"]
    assert {"id", "trigger_timestamp", "state_size", "end_to_end_duration", "external_path"} <= set(completed)
    vertex = bodies(records, Endpoint.JOB)[0][1]["vertices"][0]
    assert {"id", "name", "parallelism", "maxParallelism", "status", "tasks"} <= set(vertex)
    assert all(isinstance(v["parallelism"], int) for _, b in bodies(records, Endpoint.JOB) for v in b["vertices"])
    metrics = {entry["id"]: entry["value"] for entry in bodies(records, Endpoint.JOB_METRICS)[0][1]}
    assert {"numRestarts", "numRescales", "uptime"} <= set(metrics)
    assert all(isinstance(value, str) for value in metrics.values())


def test_every_vertex_is_sampled_with_flinks_metrics(records: list[RawRecord]) -> None:
    jobs = {job.spec.name: job.spec for job in load_simulated_jobs()}
    names = {body["jid"]: body["name"] for _, body in bodies(records, Endpoint.JOB)}
    assert set(names.values()) == set(jobs)
    observed = defaultdict(set)
    for record, body in bodies(records, Endpoint.VERTEX_METRICS):
        observed[record.job_id].add(record.vertex_id)
        if not body:
            continue
        ids = [metric["id"] for metric in body]
        assert ids[: len(POLLED)] == list(POLLED)
        assert ",".join(ids) in record.endpoint
        assert all(set(metric) == {"id", *AGGREGATES} for metric in body)
        busy = next(metric for metric in body if metric["id"] == "busyTimeMsPerSecond")
        assert busy["avg"] == "NaN" or 0 <= busy["min"] <= busy["avg"] <= busy["max"] <= 1000
    assert {names[job]: len(vertices) for job, vertices in observed.items() if job} == {
        name: len(spec.operators) for name, spec in jobs.items()
    }
    pending = [
        m["id"] for _, b in bodies(records, Endpoint.VERTEX_METRICS) for m in b if m["id"].endswith("pendingRecords")
    ]
    assert "Source__orders.pendingRecords" in pending


def test_counters_grow_within_a_run_and_restart_after_a_rescale(records: list[RawRecord]) -> None:
    running = {}
    for record, body in bodies(records, Endpoint.JOB):
        if body["state"] == "RUNNING":
            running[record.job_id, record.observed_at_ms // 300_000] = body["timestamps"]["RUNNING"]
    before: dict[str, tuple[int, float]] = {}
    growth: dict[str, float] = defaultdict(float)
    grew = restarted = 0
    samples = sorted(bodies(records, Endpoint.VERTEX_METRICS), key=lambda pair: pair[0].observed_at_ms)
    for record, body in samples:
        values = {metric["id"]: metric for metric in body}
        start = running.get((record.job_id, record.observed_at_ms // 300_000))
        if not values or start is None or values["numRecordsIn"]["sum"] == 0:
            continue
        count = values["numRecordsIn"]["sum"]
        last_start, last_count = before.get(str(record.vertex_id), (start, 0.0))
        if last_start == start:
            assert count >= last_count
            growth[str(record.vertex_id)] = max(growth[str(record.vertex_id)], count - last_count)
            grew += 1
        else:  # at most what five minutes bring, catching up included, however much was counted before
            assert count < last_count or count <= 3 * growth[str(record.vertex_id)]
            restarted += 1
        before[str(record.vertex_id)] = (start, count)
    assert grew > 5_000
    assert restarted > 100


def test_restarts_are_told_by_states_and_times(records: list[RawRecord]) -> None:
    states = [body["state"] for _, body in bodies(records, Endpoint.JOB)]
    assert set(states) == {"RUNNING", "RESTARTING", "CREATED"}
    times = [body["timestamps"] for _, body in bodies(records, Endpoint.JOB) if body["state"] == "RUNNING"]
    downtimes = [t["RUNNING"] - t["RESTARTING"] for t in times if t["RESTARTING"]]
    assert len(downtimes) > 1000
    assert all(15_000 < downtime < 150_000 for downtime in downtimes)
    assert any(not body for _, body in bodies(records, Endpoint.VERTEX_METRICS))
    failed = [body for _, body in bodies(records, Endpoint.EXCEPTIONS) if body["timestamp"]]
    assert failed
    assert all(body["root-exception"] == body["exceptionHistory"]["entries"][0]["stacktrace"] for body in failed)


def test_busy_time_is_nan_just_after_a_start(records: list[RawRecord]) -> None:
    unmeasured = [
        record
        for record, body in bodies(records, Endpoint.VERTEX_METRICS)
        for metric in body
        if metric["id"] == "busyTimeMsPerSecond" and metric["avg"] == "NaN"
    ]
    assert unmeasured
    assert all('"NaN"' in record.body for record in unmeasured)


def test_the_filled_template_is_the_reply() -> None:
    spec = load_simulated_jobs()[0].spec
    ids, submitted = Ids.of("c", spec), 1_000_000
    view = replace(
        build_hollow_details(spec, submitted),
        now_ms=9_000_000,
        duration_ms=8_000_000,
        running_for_ms=9_000_000 - submitted - FIRST_START_MS,
        created_ms=submitted + 100,
        running_ms=submitted + FIRST_START_MS,
        restarting_ms=0,
        parallelism=list(range(1, len(spec.operators) + 1)),
    )
    filled = build_template(build_job_reply(spec, ids, build_hollow_details(spec, submitted))) % list_hole_values(view)
    assert json.loads(filled) == build_job_reply(spec, ids, view)


def test_a_big_fleet_is_written_in_blocks(tmp_path: Path) -> None:
    request = HistoryRequest(1, END, tmp_path, "load", 1, scale_jobs=130, operators=3, window_s=300)
    summary = write_history(request, workers=2)
    assert summary["operators"] == 390
    assert len(digest(tmp_path)) == 2
    lines = [line for path in tmp_path.rglob("*.gz") for line in gzip.decompress(path.read_bytes()).splitlines()]
    samples = [record for record in map(json.loads, lines) if record["kind"] == "vertex_metrics"]
    assert len({record["vertex_id"] for record in samples}) == 390
    assert len(samples) == pytest.approx(390 * 12, rel=0.02)


def test_a_recovering_job_is_polled_every_minute_besides(tmp_path: Path) -> None:
    hours = 12
    written = []
    for recovery_s in (RECOVERY_S, 0):
        root = tmp_path / str(recovery_s)
        write_history(HistoryRequest(hours, END, root, recovery_s=recovery_s), workers=1)
        written.append([one for path in sorted(root.rglob("*.gz")) for one in read_records(path)])
    result, regular = written
    kinds = (
        Endpoint.JOB,
        Endpoint.VERTEX_METRICS,
        Endpoint.CHECKPOINTS,
        Endpoint.PLAN,
        Endpoint.OVERVIEW,
        Endpoint.JOB_METRICS,
    )
    added = {one for one in result if one.kind in kinds} - {one for one in regular if one.kind in kinds}
    assert len(result) - len(added) == pytest.approx(len(regular), abs=5)  # an exception may be told earlier
    assert 1.05 < len(result) / len(regular) < 1.15
    assert {one.kind for one in added} == {Endpoint.JOB, Endpoint.VERTEX_METRICS}
    polls = defaultdict(list)
    for record, body in bodies(result, Endpoint.JOB):
        if body["state"] == "RUNNING":
            polls[record.job_id, body["timestamps"]["RUNNING"]].append(record.observed_at_ms)
    waits = [min(times) - running for (_, running), times in polls.items()]
    waits = [wait for wait in waits if wait < 3_600_000]  # but of those that ran already
    assert len(waits) > 20
    assert max(waits) <= 65_000
    assert all(one.observed_at_ms % 60_000 // 1000 in range(50, 55) for one in added)


def test_wrong_requests_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(IntervalError, match="full hour"):
        HistoryRequest(1, END.replace(minute=5), tmp_path)
    with pytest.raises(SpecError, match="whole minutes"):
        HistoryRequest(1, END, tmp_path, window_s=7)
    assert main(["--end", "2026-11-20T18:30:00Z", "--out", str(tmp_path)]) == 2
    assert "full hour" in capsys.readouterr().err
