"""A real Flink job on a real broker: demand against the job's own counters, and while it is down; commits are off."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kafka_job import JOB, SOURCE, build_kafka_job, submit_kafka_job
from local_kafka import running_kafka
from small_world import World

from include.metric_sources.collection import collect_for
from include.settings import SETTINGS_FILE_VARIABLE, load_settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.utc import ceil_hour, floor_hour
from lab.local_flink.cluster import ClusterOptions, LocalCluster

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
WINDOW_S, PER_S, UP_S, DOWN_S = 5, 300, 60, 30


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Rows of silver.observations, and when the job was killed."""
    work = tmp_path_factory.mktemp("kafka")
    world = World(work / "out", work / "out" / "raw")
    world.out.mkdir()
    with (
        pytest.MonkeyPatch.context() as patch,
        running_kafka(work / "broker") as kafka,
        LocalCluster(work / "flink", ClusterOptions.quick()) as cluster,
    ):
        kafka.create("orders", 3)
        job_id = submit_kafka_job(cluster.client, build_kafka_job(work), kafka.servers, "orders")
        cluster.client.wait_for_parallelism(job_id, {}, timeout_s=120)
        _write_settings(work / "tidewise.toml", cluster.rest_url, kafka.servers)
        patch.setenv(SETTINGS_FILE_VARIABLE, str(work / "tidewise.toml"))
        for key, value in world.environment.items():
            patch.setenv(key, value)
        stop = threading.Event()
        producer = threading.Thread(target=_produce, args=(kafka, stop))
        collector = threading.Thread(target=collect_for, args=(load_settings(), 3600.0), kwargs={"stop": stop})
        started = time.time()
        producer.start()
        collector.start()
        time.sleep(UP_S)
        cluster.kill_taskmanager()
        down = time.time()
        time.sleep(DOWN_S)
        stop.set()
        collector.join(60)
        producer.join(60)
        cluster.stop()
    hours = floor_hour(datetime.fromtimestamp(started, UTC)), ceil_hour(datetime.now(UTC))
    counts = world.complete(StageRequest(Stage.INGEST, hours[1], *hours), world.out / "ingest.log")
    assert counts["quarantined"] == 0
    return [json.loads(row) for row in world.rows()["silver.observations"]], started, down


def _produce(kafka, stop: threading.Event) -> None:
    turn, started = 0, time.time()
    while not stop.wait(max(0.0, started + 0.1 * turn - time.time())):
        kafka.send("orders", PER_S // 10)
        turn += 1


def _write_settings(path: Path, rest_url: str, servers: str) -> None:
    path.write_text(
        f'[ingest]\nsettle_s = 5\n[clusters.k]\nrest_url = "{rest_url}"\nwindow_s = {WINDOW_S}\npoll_every_s = 1\n'
        f'[clusters.k.kafka.main]\nbootstrap_servers = "{servers}"\ntopics = {{ "{JOB}/{SOURCE}" = ["orders"] }}\n'
    )


def _windows(rows: list[dict], since: float, until: float) -> list[dict]:
    def at(row: dict) -> float:
        return datetime.fromisoformat(str(row["window_start"])).replace(tzinfo=UTC).timestamp()

    return [row for row in rows if row["operator"] == SOURCE and since <= at(row) and at(row) + WINDOW_S <= until]


def test_demand_is_what_the_job_counts_while_it_keeps_up(recorded):
    rows, started, down = recorded
    windows = [row for row in _windows(rows, started + 10, down - WINDOW_S) if not row["disturbed"]]
    assert len(windows) >= 6
    arrived = sum(row["target_data_rate_per_s"] for row in windows)
    emitted = sum(row["observed_output_rate_per_s"] for row in windows)
    assert arrived == pytest.approx(emitted, rel=0.02)
    assert arrived / len(windows) == pytest.approx(PER_S, rel=0.02)


def test_demand_goes_on_while_the_job_is_down(recorded):
    rows, _, down = recorded
    windows = _windows(rows, down + WINDOW_S, down + DOWN_S)
    assert len(windows) >= 4
    for row in windows:
        assert row["target_data_rate_per_s"] == pytest.approx(PER_S, rel=0.1)
        assert row["disturbed"]
    assert sum(row["target_data_rate_per_s"] for row in windows) / len(windows) == pytest.approx(PER_S, rel=0.02)
