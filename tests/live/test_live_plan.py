"""The whole way against a live Flink cluster: collect over REST, learn, plan, apply in mode auto, see it happen."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from small_world import World
from waiting import wait_until

from cli.local_flink.load import AGGREGATE, ENRICH, SINK, SOURCE
from include.flink.collection import collect_for
from include.settings import load_settings
from include.stages import Stage, StageRequest
from include.utc import floor_hour, parse_utc

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]
CLUSTER = "live"


@pytest.fixture
def world(tmp_path, overloaded, monkeypatch) -> World:
    """A world that knows the live cluster and may change it."""
    settings = {
        "REST_URL": overloaded.rest_url,
        "WINDOW_S": "5",
        "POLL_EVERY_S": "2.5",
        "SLOTS_MAX": "4",
        "APPLY_MODE": "auto",
    }
    for key, value in settings.items():
        monkeypatch.setenv(f"TIDEWISE__CLUSTERS__{CLUSTER}__{key}", value)
    world = World(tmp_path / "out", tmp_path / "out" / "raw")
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    return world


@contextmanager
def collecting():
    """Poll the live cluster beside everything else, as the collect DAG does."""
    stop = threading.Event()
    collector = threading.Thread(target=collect_for, args=(load_settings(), 3600.0), kwargs={"stop": stop})
    collector.start()
    try:
        yield
    finally:
        stop.set()
        collector.join(timeout=60)
    assert not collector.is_alive()


def stage(world: World, name: Stage, since: datetime | None = None, at: datetime | None = None) -> dict[str, object]:
    """Run a stage as of ``at`` or now; ingestion takes the hours since ``since``, the running one included."""
    now = at or datetime.now(UTC)
    end = None if since is None else floor_hour(now) + timedelta(hours=1)
    request = StageRequest(name, now, None if since is None else floor_hour(since), end)
    return world.complete(request, world.out / f"{name}.log")


def wait_for_polls(world: World, count: int) -> None:
    """Wait until so many polls more have been written."""
    before = len(list(world.raw.rglob("*.gz")))
    assert wait_until(lambda: len(list(world.raw.rglob("*.gz"))) >= before + count, 300)


def rows(world: World, table: str) -> list[dict[str, object]]:
    return [json.loads(row) for row in world.rows()[table]]


def timestamp(row: dict[str, object], column: str) -> datetime:
    text = str(row[column]).replace(" ", "T")
    return parse_utc(text if text.endswith("+00:00") else f"{text}+00:00")


def test_a_plan_from_live_metrics_is_applied_and_confirmed(world, overloaded):
    client, job_id = overloaded.client, overloaded.job_id
    world.out.mkdir(exist_ok=True)
    began = datetime.now(UTC)
    with collecting():
        wait_for_polls(world, 30)
        ingested = stage(world, Stage.INGEST, began)
        assert (ingested["jobs"], ingested["quarantined"]) == (1, 0)
        seen = [row for row in rows(world, "silver.observations") if row["operator"] == ENRICH and not row["disturbed"]]
        assert {row["parallelism"] for row in seen} == {1}
        assert max(row["busy_share"] for row in seen) > 0.7
        for name in (Stage.TRAIN, Stage.FORECAST, Stage.PLAN):
            stage(world, name)
        (first, *_) = sorted(rows(world, "gold.plans"), key=lambda row: row["step_index"])
        wanted = dict(first["parallelism_to"])
        assert first["status"] == "planned", first
        assert set(wanted) == {SOURCE, ENRICH, AGGREGATE, SINK}
        assert wanted[ENRICH] > 1

        # Minutes of history make no season: the reactive controller sees more than the job can process, and steers it.
        tick = datetime.now(UTC).replace(microsecond=0)
        watched = stage(world, Stage.WATCH, at=tick)
        (looked,) = rows(world, "gold.looks")
        assert (watched["seen"], looked["decision"], looked["planned"]) == (1, "net", False), looked
        wanted = dict(looked["parallelism_to"])
        assert wanted[ENRICH] > 1
        applied = stage(world, Stage.APPLY, at=tick)
        assert applied["confirmed"] == 1
        assert client.running_parallelism(job_id) == wanted
        (outcome,) = [row for row in rows(world, "gold.applied_steps") if row["status"] != "refused"]
        assert outcome["status"] == "confirmed"
        assert outcome["step_id"] == looked["step_id"]
        assert dict(outcome["parallelism_confirmed"]) == wanted
        assert outcome["realised_downtime_s"] > 0
        assert stage(world, Stage.APPLY, at=tick)["due"] == 0  # a step is never sent twice
        wait_for_polls(world, 6)

    stage(world, Stage.INGEST, began)
    (rescale,) = [row for row in rows(world, "silver.rescales") if row["kind"] == "rescale"]
    assert dict(rescale["parallelism_after"]) == wanted
    assert 0 < rescale["downtime_s"] < 90
    # Flink rescales when it sees fit; the stop is dated at the last reply or checkpoint that shows the job at work.
    stopped_at = timestamp(rescale, "started_at")
    assert timestamp(outcome, "requested_at") - timedelta(seconds=30) < stopped_at < timestamp(outcome, "confirmed_at")
