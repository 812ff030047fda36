"""Clusters that misbehave, each in its own way, beside one that does not: lines in the log, and nobody waits."""

from __future__ import annotations

import gzip
import json
import logging
import math
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import flink_server
import pytest
import trustme
from flink_server import FakeJob, FlinkServer, serving
from proxies import server_context
from waiting import wait_until

import include.flink.client
from include.metric_sources import live_sources
from include.metric_sources.collection import CollectionError, collect_for
from include.settings import Cluster, Paths, Settings
from include.settings.connection import Connection
from models.polling.poll_history import PollHistory

ROOT = Path(__file__).resolve().parents[2]
JOBS = [FakeJob(f"{number:032x}", f"job-{number}") for number in range(1, 13)]


@pytest.fixture(autouse=True)
def short_limits(monkeypatch):
    """The limits of production, shortened: a cluster's own time does not matter here."""

    def client(rest_url, **options):
        limits = {"retries": 1, "read_timeout_s": 0.5, "total_timeout_s": 2.0, "largest_bytes": 2**20}
        return include.flink.client.FlinkClient(rest_url, backoff_factor_s=0.0, **limits, **options)

    monkeypatch.setattr(live_sources, "FlinkClient", client)


def settings_for(raw, servers, every_s=60.0, **connections):
    clusters = {
        name: Cluster(
            rest_url=server if isinstance(server, str) else server.url,
            poll_every_s=every_s,
            connection=connections.get(name, Connection()),
        )
        for name, server in servers.items()
    }
    return Settings(paths=Paths(raw=str(raw)), clusters=clusters)


def lines_of(raw, cluster):
    paths = sorted((raw / f"cluster={cluster}").rglob("*.gz"))
    return [json.loads(line) for path in paths for line in gzip.decompress(path.read_bytes()).splitlines()]


def temporary_files(folder):
    return [path for path in folder.rglob("*") if path.name.endswith(".tmp")]


TROUBLES = {
    "null-jobs": ("/jobs/overview", flink_server.reply_with({"jobs": None}), "no list of jobs"),
    "html": ("*", flink_server.reply_html, "no JSON"),
    "huge": ("*", flink_server.reply_500_mb, "larger than 1048576 bytes"),
    "slow-bytes": ("*", flink_server.trickle_body, "longer than 2 s"),
    "slow-head": ("*", flink_server.trickle_head, "longer than 2 s"),
    "silent": ("*", flink_server.hang, "did not reply"),
    "redirect": ("*", flink_server.redirect, "redirect to https://login.example.com/oauth"),
    "closing": ("*", flink_server.close, "did not reply"),
    "error": ("/jobs/overview", flink_server.reply_500, "status 500"),
    "junk-jobs": ("/jobs/overview", flink_server.reply_with({"jobs": [None, {"jid": "../x"}]}), "without an id"),
    "junk-job": (JOBS[0].job_id, flink_server.reply_with({"vertices": [None, {"id": 5}], "plan": {"nodes": 1}}), ""),
}


@pytest.mark.covers("apply_review 16")
def test_clusters_in_trouble_have_a_line_each_and_the_sound_one_goes_on(tmp_path, caplog):
    with ExitStack() as stack, caplog.at_level(logging.ERROR):
        servers = {"sound": stack.enter_context(serving(FlinkServer(*JOBS)))}
        for name, (path, trouble, _) in TROUBLES.items():
            server = FlinkServer(*JOBS[:2])
            server.troubles[path] = trouble
            servers[name] = stack.enter_context(serving(server))
        servers["untrusted"] = stack.enter_context(serving(FlinkServer(), server_context(trustme.CA())))
        servers["nobody"] = "http://127.0.0.1:9"
        arrived = {}
        began = time.monotonic()

        def take(cluster, records):
            arrived.setdefault(cluster, time.monotonic() - began)

        collect_for(settings_for(tmp_path, servers), 0.0, on_records=take)
    assert arrived["sound"] < min(arrived.get(name, math.inf) for name in ("slow-bytes", "slow-head"))
    sound = lines_of(tmp_path, "sound")
    assert len(sound) == 1 + len(JOBS) * (5 + 2)
    assert {line["status"] for line in sound} == {200}
    for name, (_, _, reported) in TROUBLES.items():
        assert any(f"cluster {name}: " in line and reported in line for line in caplog.messages) or not reported, name
    assert any("cluster untrusted: " in line and "certificate" in line for line in caplog.messages)
    assert any("cluster nobody: " in line and "did not reply" in line for line in caplog.messages)
    assert not [record for record in caplog.records if record.exc_info], "no fault is an error of our own"
    assert "t0psecret" not in caplog.text
    assert {line["kind"] for line in lines_of(tmp_path, "null-jobs")} == {"overview"}
    assert temporary_files(tmp_path) == []


@pytest.mark.covers("apply_review 16")
def test_a_poll_that_misses_one_reply_keeps_all_others_and_names_it(tmp_path, caplog):
    server = FlinkServer(*JOBS)
    path = f"/jobs/{JOBS[3].job_id}/vertices/{'2' * 32}/subtasks/metrics"
    with serving(server), caplog.at_level(logging.ERROR):
        whole = collect_for(settings_for(tmp_path / "whole", {"prod": server}), 0.0)
        server.troubles[path] = lambda request: (
            flink_server.hang(request) if "agg=" in request.handler.path else request.write_json([])
        )
        missing = collect_for(settings_for(tmp_path / "missing", {"prod": server}), 0.0)
    assert missing.records == whole.records - 1
    (line,) = caplog.messages
    assert line.startswith(f"cluster prod: {path}: cluster prod ({server.url}) did not reply")


def test_a_cluster_that_falls_silent_in_mid_poll_is_left_soon_and_keeps_what_came(tmp_path, caplog):
    server = FlinkServer(*[FakeJob(f"{number:032x}", f"job-{number}") for number in range(1, 200)])
    server.troubles["/exceptions"] = flink_server.hang
    with serving(server), caplog.at_level(logging.ERROR):
        began = time.monotonic()
        delivery = collect_for(settings_for(tmp_path, {"prod": server}), 0.0)
        assert time.monotonic() - began < 60  # 199 jobs, each silent for a second and more
    assert delivery.records > 8
    assert any("the rest of this poll is left out" in line for line in caplog.messages)
    assert len(caplog.messages) <= 6


def test_each_cluster_has_its_own_pace(tmp_path):
    slow = FlinkServer(*JOBS[:1])
    slow.troubles["/exceptions"] = lambda request: (time.sleep(0.4), request.write_json({}))
    silent = FlinkServer()
    silent.troubles["*"] = flink_server.hang
    polls = {"sound": 0, "slow": 0, "silent": 0}

    def take(cluster, records):
        polls[cluster] += 1

    with serving(FlinkServer(*JOBS[:1])) as sound, serving(slow), serving(silent):
        servers = {"sound": sound, "slow": slow, "silent": silent}
        collect_for(settings_for(tmp_path, servers, every_s=1.0), 2.5, on_records=take, grace_s=1.0)
    assert polls["sound"] == 3
    assert polls["slow"] >= 2
    assert polls["silent"] == 0


def test_the_records_are_those_of_the_files_and_the_history_takes_them(tmp_path):
    history, lock, taken = PollHistory({}), threading.Lock(), []

    def take(cluster, records):
        with lock:
            taken.extend(records)
            assert history.add(records) == []

    with serving(FlinkServer(*JOBS)) as server:
        collect_for(settings_for(tmp_path, {"prod": server}), 0.0, on_records=take)
    assert [json.loads(record.to_line()) for record in taken] == lines_of(tmp_path, "prod")
    assert {(job.job, job.job_id) for job in history.jobs()} == {(job.name, job.job_id) for job in JOBS}


def test_a_callback_that_fails_is_a_line_and_the_files_are_written(tmp_path, caplog):
    def fail(cluster, records):
        raise ZeroDivisionError

    with serving(FlinkServer(*JOBS)) as server:
        delivery = collect_for(settings_for(tmp_path, {"prod": server}), 0.0, on_records=fail)
    assert delivery.written == 1
    assert any("cluster prod: the records of a poll were not taken in" in line for line in caplog.messages)


def test_a_full_disk_is_a_line_and_the_polls_go_on(tmp_path, caplog):
    """/dev/full takes nothing: each write ends in ENOSPC."""
    taken = []
    with serving(FlinkServer(*JOBS[:1])) as server, pytest.MonkeyPatch.context() as patch:
        opened = Path.open

        def open_full(path, mode="r", *arguments, **options):
            place = Path("/dev/full") if path.name.endswith(".tmp") and "w" in mode else path
            return opened(place, mode, *arguments, **options)

        patch.setattr(Path, "open", open_full)
        settings = settings_for(tmp_path, {"prod": server}, every_s=1.0)
        with pytest.raises(CollectionError, match="No space left"):
            collect_for(settings, 1.5, on_records=lambda cluster, records: taken.append(records))
    assert len(taken) == 2
    assert [line for line in caplog.messages if "replies were not written: [Errno 28]" in line]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_stopping_ends_within_a_moment_and_keeps_what_came(tmp_path):
    silent = FlinkServer()
    silent.troubles["*"] = flink_server.hang
    stop, ended = threading.Event(), []
    with serving(FlinkServer(*JOBS)) as sound, serving(silent):
        settings = settings_for(tmp_path, {"sound": sound, "silent": silent})
        thread = threading.Thread(target=lambda: ended.append(collect_for(settings, math.inf, stop=stop)))
        thread.start()
        assert wait_until(lambda: list(tmp_path.rglob("*.gz")), 20)
        began = time.monotonic()
        stop.set()
        thread.join(5)
        assert time.monotonic() - began < 1.5
    assert ended[0].written == 1
    assert temporary_files(tmp_path) == []


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_command_and_leaves_no_half_file(tmp_path, sent):
    silent = FlinkServer()
    silent.troubles["*"] = flink_server.hang
    with serving(FlinkServer(*JOBS)) as sound, serving(silent):
        (tmp_path / "tidewise.toml").write_text(
            f'[paths]\nraw = "{tmp_path / "raw"}"\n'
            f'[clusters.sound]\nrest_url = "{sound.url}"\n[clusters.silent]\nrest_url = "{silent.url}"\n'
        )
        command = [sys.executable, "-m", "cli.collect", "--seconds", "3600"]
        environment = {"TIDEWISE_SETTINGS": str(tmp_path / "tidewise.toml"), "PATH": "/usr/bin:/bin"}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert wait_until(lambda: list(tmp_path.rglob("*.gz")), 60)
        began = time.monotonic()
        process.send_signal(sent)
        process.communicate(timeout=10)
        assert time.monotonic() - began < 3
    (path,) = [one for one in (tmp_path / "raw").rglob("*") if one.is_file()]
    assert len(gzip.decompress(path.read_bytes()).splitlines()) == 1 + len(JOBS) * (5 + 2)


@pytest.mark.covers("apply_review 21")
@pytest.mark.parametrize("raw", ["abfss://a@b/raw", "gs://b", "hdfs:/raw"])
def test_a_raw_root_behind_another_uri_is_refused_by_name(raw):
    with pytest.raises(
        ValueError, match=r"is a URI of the scheme .* or the folder where that storage is mou"
    ) as caught:
        Paths(raw=raw)
    assert "paths" in str(caught.value).lower()


def test_a_raw_root_on_s3_has_one_name():
    assert Paths(raw="s3://bucket/raw") == Paths(raw="s3a://bucket/raw")


def test_a_raw_root_with_a_colon_in_a_folder_is_none():
    assert Paths(raw="data/a:b").raw == "data/a:b"
