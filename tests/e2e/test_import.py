"""Twelve days of history on a real Prometheus, filled by promtool: imported, killed and resumed."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest
from local_prometheus import fill, running_prometheus, running_victoria_metrics
from openmetrics_history import SOURCE_ID, WORK_ID, Run, count_records, write_history
from waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
ROOT = Path(__file__).resolve().parents[2]
START, END = (int(datetime(2026, 9, day, tzinfo=UTC).timestamp()) for day in (1, 13))
DAY_S, EVERY_S = 86_400, 300
HOURS = (END - START) // 3600
FIRST, SECOND = "a" * 32, "b" * 32
RUNS = [
    Run(FIRST, START - 7_000, START + 4 * DAY_S + 1_234, {SOURCE_ID: 1, WORK_ID: 2}, "tm:1_a"),
    # A rescale: the same id, other parallelism, counters that begin again.
    Run(FIRST, START + 4 * DAY_S + 1_264, START + 8 * DAY_S, {SOURCE_ID: 1, WORK_ID: 3}, "tm:1_a"),
    # A redeployment: another id, on another TaskManager.
    Run(SECOND, START + 8 * DAY_S + 100, END + DAY_S, {SOURCE_ID: 2, WORK_ID: 2}, "tm:2_b"),
]


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    path = tmp_path_factory.mktemp("history") / "history.txt"
    write_history(path, RUNS, EVERY_S)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory, history):
    work = tmp_path_factory.mktemp("prometheus")
    fill(work, history)
    with running_prometheus(work) as url:
        yield url


def environment(url: str, raw: Path) -> dict[str, str]:
    prefix = "TIDEWISE__CLUSTERS__prod__"
    return {
        **os.environ,
        "TIDEWISE__PATHS__RAW": str(raw),
        f"{prefix}PROMETHEUS__URL": url,
        f"{prefix}PROMETHEUS__STEP_S": str(EVERY_S),
        f"{prefix}PROMETHEUS__MAX_SAMPLE_AGE_S": "299",
        f"{prefix}PROMETHEUS__REQUESTS_PER_S": "1000",
    }


def command(start: str = "2026-09-01", end: str = "2026-09-13") -> list[str]:
    return [
        sys.executable,
        "-m",
        "cli.console",
        "import",
        "--source",
        "prom",
        "--from",
        start,
        "--to",
        end,
        "--cluster",
        "prod",
    ]


def run(url: str, raw: Path, *days: str) -> str:
    done = subprocess.run(
        command(*days), env=environment(url, raw), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def files_of(raw: Path) -> dict[str, bytes]:
    return {path.relative_to(raw).as_posix(): path.read_bytes() for path in sorted(raw.rglob("*.jsonl.gz"))}


@pytest.fixture(scope="module")
def written(server, tmp_path_factory):
    """The raw files of an import that nothing disturbed."""
    raw = tmp_path_factory.mktemp("raw")
    assert f"{HOURS} hours written" in run(server, raw)
    return raw


@pytest.fixture(scope="module")
def lines(written):
    result = []
    for path in sorted(written.rglob("*.jsonl.gz")):
        with gzip.open(path, "rt") as opened:
            result += [json.loads(line) for line in opened]
    for line in result:
        line["body"] = json.loads(line["body"])
    return result


@pytest.mark.long  # below is an hour that is there already
def test_a_second_import_changes_nothing(server, written):
    before = {path: path.stat().st_mtime_ns for path in written.rglob("*.gz")}
    assert len(before) == HOURS
    assert f"0 hours written (0 lines), {HOURS} there already" in run(server, written)
    assert {path: path.stat().st_mtime_ns for path in written.rglob("*.gz")} == before


@pytest.mark.long
def test_killed_at_two_moments_and_run_again_it_leaves_the_same_files(server, written, tmp_path):
    for least in (50, 160):
        with subprocess.Popen(command(), env=environment(server, tmp_path), cwd=ROOT, stderr=subprocess.DEVNULL) as one:
            assert wait_until(lambda least=least: len(files_of(tmp_path)) >= least or one.poll() is not None, 120)
            one.send_signal(signal.SIGKILL)
        assert one.returncode == -signal.SIGKILL
    assert least <= len(files_of(tmp_path)) < HOURS
    assert "hours written" in run(server, tmp_path)
    assert files_of(tmp_path) == files_of(written)


def test_an_hour_that_was_collected_is_left_alone(server, written, tmp_path):
    hour = "cluster=prod/date=2026-09-03/hour=05"
    (tmp_path / hour).mkdir(parents=True)
    (tmp_path / hour / "poll-1.jsonl.gz").write_bytes(gzip.compress(b""))
    assert "23 hours written" in (shown := run(server, tmp_path, "2026-09-03", "2026-09-04"))
    assert "1 left as collected" in shown
    result = files_of(tmp_path)
    assert list(result).count(f"{hour}/poll-1.jsonl.gz") == 1
    assert not any(name.startswith(hour) and "prometheus-" in name for name in result)


@pytest.mark.long
def test_a_server_that_limits_samples_is_asked_for_fewer_hours(tmp_path):
    """The limit lets one hour pass and not six, nor three."""
    day = [Run(FIRST, START - 7_000, START + DAY_S, {SOURCE_ID: 1, WORK_ID: 3}, "tm:1_a")]
    write_history(tmp_path / "history.txt", day, EVERY_S)
    fill(tmp_path, tmp_path / "history.txt")
    with running_prometheus(tmp_path, options=["--query.max-samples=600"]) as url:
        query = f"{url}/api/v1/query_range?query=%7Bjob_id!=%22%22%7D&start={START}&end={START + 21_600}&step={EVERY_S}"
        with pytest.raises(urllib.error.HTTPError, match="422"):
            urllib.request.urlopen(query, timeout=10)
        assert "12 hours written" in run(url, tmp_path / "raw", "2026-09-01", "2026-09-01T12:00")
        lines = gzip.decompress(
            files_of(tmp_path / "raw")["cluster=prod/date=2026-09-01/hour=07/prometheus-20260901T07.jsonl.gz"]
        )
        assert lines.count(b'"kind":"vertex_metrics"') == 2 * 3600 // EVERY_S


def test_victoria_metrics_gives_the_same_files(written, history, tmp_path):
    days = "2026-09-04", "2026-09-06"  # with the rescale
    with running_victoria_metrics(tmp_path / "server", history) as url:
        assert "48 hours written" in run(url, tmp_path / "raw", *days)
    result, expected = files_of(tmp_path / "raw"), files_of(written)
    assert len(result) == 48
    for name, content in result.items():
        assert gzip.decompress(content) == gzip.decompress(expected[name]), name


def test_every_sample_lies_in_the_hour_of_its_directory_once(lines, written):
    for name, content in files_of(written).items():
        _, date, hour, _ = name.split("/")
        start_ms = 1000 * datetime.fromisoformat(f"{date[5:]}T{hour[5:]}:00+00:00").timestamp()
        times = [json.loads(line)["observed_at_ms"] for line in gzip.decompress(content).splitlines()]
        assert times
        assert all(start_ms <= at < start_ms + 3_600_000 for at in times), name
    keys = [(line["kind"], line["job_id"], line["vertex_id"], line["observed_at_ms"]) for line in lines]
    assert len(keys) == len(set(keys))


def test_runs_are_recognised_from_the_series_alone(lines):
    """Each run has one RUNNING time over all its hours, and its parallelism at every sample."""
    observed = {}
    for line in lines:
        if line["kind"] == "job":
            body = line["body"]
            assert body["state"] == "RUNNING"
            run_key = (line["job_id"], body["timestamps"]["RUNNING"])
            parallelism = {vertex["id"]: vertex["parallelism"] for vertex in body["vertices"]}
            observed.setdefault(run_key, []).append((line["observed_at_ms"], parallelism))
    truth = {(one.job_id, 1000 * one.start_s - 3): one for one in RUNS}  # the reporter's value is 3 ms older
    assert observed.keys() == truth.keys()
    for key, reported in observed.items():
        one = truth[key]
        assert {tuple(sorted(parallelism.items())) for _, parallelism in reported} == {
            tuple(sorted(one.parallelism.items()))
        }
        inside_s = min(one.end_s, END) - max(one.start_s, START)
        assert abs(len(reported) - inside_s / EVERY_S) <= 1


def test_counters_are_summed_over_the_subtasks_of_the_run(lines):
    sources = [line for line in lines if line["vertex_id"] == SOURCE_ID]
    assert len(sources) > 3_300
    for line in sources:
        at_s = line["observed_at_ms"] // 1000
        (one,) = (one for one in RUNS if one.job_id == line["job_id"] and one.start_s <= at_s < one.end_s)
        metrics = {metric["id"]: metric for metric in line["body"]}
        expected = count_records(one.start_s, at_s)
        assert metrics["numRecordsOut"]["avg"] == metrics["numRecordsOut"]["max"] == expected
        assert metrics["numRecordsOut"]["sum"] == expected * one.parallelism[SOURCE_ID]


def test_what_the_series_do_not_tell_is_absent(lines):
    assert {line["kind"] for line in lines} == {"job", "job_metrics", "vertex_metrics"}  # no graph, no checkpoints
    job = next(line["body"] for line in lines if line["kind"] == "job")
    assert {vertex["name"] for vertex in job["vertices"]} == {"Source: orders", "enrich"}
    assert not any("maxParallelism" in vertex for vertex in job["vertices"])
