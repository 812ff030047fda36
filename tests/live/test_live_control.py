"""The controller against a live Flink cluster, from a cluster's first poll on."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from controller_process import controlling, read_log, start_controller
from live_flink import job_on
from small_world import World
from waiting import wait_until

from include.stage_names import Stage
from include.stage_request import StageRequest
from include.utc import floor_hour
from lab.local_flink.load import AGGREGATE, ENRICH, SINK, SOURCE, LoadOptions

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]
CLUSTER = "live"
PACE = {
    f"TIDEWISE__CLUSTERS__{CLUSTER}__WINDOW_S": "5",
    f"TIDEWISE__CLUSTERS__{CLUSTER}__POLL_EVERY_S": "2.5",
    f"TIDEWISE__CLUSTERS__{CLUSTER}__SLOTS_MAX": "4",
    "TIDEWISE__INGEST__SETTLE_S": "10",
    "TIDEWISE__PLANNER__TIMING__APPLY_EVERY_S": "10",
    "TIDEWISE__APPLY__TICK_S": "2",
    "TIDEWISE__LIMITS__COOLDOWN_S": "20",
    "TIDEWISE__APPLY__CONFIRM_TIMEOUT_S": "60",
}


@pytest.fixture
def world(tmp_path, overloaded, monkeypatch) -> World:
    """A world that knows the live cluster and may change it."""
    (tmp_path / "out").mkdir()
    mode = {
        f"TIDEWISE__CLUSTERS__{CLUSTER}__REST_URL": overloaded.rest_url,
        f"TIDEWISE__CLUSTERS__{CLUSTER}__LIMITS__MODE": "auto",
    }
    for name, value in {**PACE, **mode}.items():
        monkeypatch.setenv(name, value)
    world = World(tmp_path / "out", tmp_path / "out" / "raw")
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    return world


def log_of(world: World, **wanted: object) -> list[dict[str, object]]:
    return read_log(world.out / "lake", **wanted)


def run_stages(world: World, since: datetime) -> dict[str, object]:
    """Ingest the hours since ``since``, the running one included, then learn and plan from them; returns the counts."""
    now = datetime.now(UTC)
    request = StageRequest(Stage.INGEST, now, floor_hour(since), floor_hour(now) + timedelta(hours=1))
    return world.complete(request, world.out / "stages.log", Stage.TRAIN, Stage.FORECAST, Stage.PLAN)


def rows(world: World, table: str) -> list[dict[str, object]]:
    return [json.loads(row) for row in world.rows().get(table, [])]


def bounds(overloaded) -> dict[str, int]:
    client = overloaded.client
    names = {vertex["id"]: vertex["name"] for vertex in client.job(overloaded.job_id)["vertices"]}
    return {names[vertex]: bound for vertex, bound in client.upper_bounds(overloaded.job_id).items()}


# Three subtasks for what one does with ease.
ROOMY = LoadOptions(job_name="roomy", low_per_s=100.0, high_per_s=100.0, cost_us=10, wait_us=490, parallelism=3)


def test_a_job_in_need_rises_and_a_roomy_one_falls(world, overloaded, local_cluster):
    output = world.out / "controller.log"
    # The programme gives no slots up before it has seen ten minutes of a load: the fall here is the planner's, which by
    # default waits until it would have paid for two rescales, which are for nothing here.
    eager = {
        "TIDEWISE__PLANNER__POLICIES": json.dumps({f"{CLUSTER}/{ROOMY.job_name}": "planner"}),
        "TIDEWISE__PLANNER__COSTS__RESCALE_WEIGHT": "0",
    }
    with job_on(local_cluster, ROOMY) as roomy, controlling(eager, output):
        for flink in (overloaded, roomy):
            confirmed = wait_until(lambda job=flink.job_name: log_of(world, verb="confirm", job=job), 240)
            assert confirmed, output.read_text()[-3000:]
        assert {row["origin"] for row in log_of(world, verb="rescale", is_dry_run=False)} == {"reactive"}
        assert overloaded.client.running_parallelism(overloaded.job_id)[ENRICH] > 1
        assert roomy.client.running_parallelism(roomy.job_id)[ENRICH] < ROOMY.parallelism


@pytest.mark.long  # above are a rise and a fall, in tests/unit what a kill and a person's change lead to
@pytest.mark.covers("apply_review 6")
@pytest.mark.covers("apply_review 24")
def test_a_new_cluster_is_guarded_killed_and_learnt_from(world, overloaded):
    """No plan, no model, no table: the first windows show a job that cannot process its load."""
    client, job_id = overloaded.client, overloaded.job_id
    began, output = datetime.now(UTC), world.out / "controller.log"
    first = start_controller({}, output)
    try:
        assert wait_until(lambda: log_of(world, verb="rescale"), 240), output.read_text()[-3000:]
    finally:
        first.kill()  # right after it wrote down that it sends: the next one has to find out what became of that
        first.wait(timeout=10)
    with controlling({}, output):
        assert wait_until(lambda: log_of(world, verb="confirm"), 400), output.read_text()[-3000:]
        recorded, confirmed = log_of(world, verb="rescale", is_dry_run=False), log_of(world, verb="confirm")[0]
        assert {(row["origin"], row["cluster"], row["job"]) for row in recorded} == {
            ("reactive", CLUSTER, overloaded.job_name)
        }
        assert confirmed["lease_number"] > recorded[0]["lease_number"]
        (sent, *_) = [row for row in recorded if row["step_id"] == confirmed["step_id"]]
        assert dict(sent["parallelism_to"])[ENRICH] > 1
        assert set(dict(sent["parallelism_to"])) == {SOURCE, ENRICH, AGGREGATE, SINK}

        by_person = {**bounds(overloaded), SINK: 2}
        client.set_parallelism(job_id, by_person)
        assert wait_until(lambda: log_of(world, reason="foreign_change"), 120), output.read_text()[-3000:]
        time.sleep(25)  # past the cool-down: nothing may be sent while the job is held
        assert bounds(overloaded) == by_person
        assert [row["reason"] for row in log_of(world)][-1] == "held"

    ingested = run_stages(world, began)
    assert ingested["jobs"] == 1
    # Tasks that start after a rescale have no busy time yet.
    assert {row["reason"] for row in rows(world, "ops.quarantine")} <= {"value_nan", "http_error"}
    kinds = [row["kind"] for row in rows(world, "silver.rescales")]
    assert kinds.count("rescale") >= 1
    (plan, *_) = sorted(rows(world, "gold.plans"), key=lambda row: row["step_index"])
    assert plan["status"] in {"planned", "hold"}, plan
    assert client.running_parallelism(job_id)[SINK] == 2
