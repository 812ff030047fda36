"""SQL jobs with Flink's default chaining under the controller: judged by the source's true rate and by saturation."""

from __future__ import annotations

import time

import numpy as np
import pytest
from controller_process import controlling, read_log
from small_world import World
from waiting import wait_until

from include.flink.poller import RestSource
from lab.local_flink.build import build_nexmark
from lab.local_flink.job_client import JobClient
from lab.local_flink.nexmark import QUERIES, submit_query
from models.polling.poll_history import PollHistory
from tools.record_queries import wait_until_running

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
CLUSTER = "sql"
WINDOW_S = 10
OVERLOAD, CALM = 3.2, 0.4  # multiples of the load at which a query's costly vertex is half busy with one subtask
PACE = {
    f"TIDEWISE__CLUSTERS__{CLUSTER}__WINDOW_S": str(WINDOW_S),
    f"TIDEWISE__CLUSTERS__{CLUSTER}__POLL_EVERY_S": "2.5",
    f"TIDEWISE__CLUSTERS__{CLUSTER}__SLOTS_MAX": "4",
    f"TIDEWISE__CLUSTERS__{CLUSTER}__LIMITS__MODE": "auto",
    "TIDEWISE__INGEST__SETTLE_S": "10",
    "TIDEWISE__PLANNER__TIMING__APPLY_EVERY_S": "10",
    "TIDEWISE__APPLY__TICK_S": "2",
    "TIDEWISE__LIMITS__COOLDOWN_S": "20",
    "TIDEWISE__APPLY__CONFIRM_TIMEOUT_S": "60",
}


@pytest.fixture
def world(tmp_path, local_cluster, monkeypatch) -> World:
    (tmp_path / "out").mkdir()
    made = World(tmp_path / "out", tmp_path / "out" / "raw")
    for name, value in {**PACE, f"TIDEWISE__CLUSTERS__{CLUSTER}__REST_URL": local_cluster.rest_url}.items():
        monkeypatch.setenv(name, value)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


def steady(per_s: float) -> tuple[tuple[int, float], ...]:
    return ((0, per_s), (7200, per_s))


def pending(client: JobClient, job_id: str) -> float:
    """Return the backlog by Flink's own metric."""
    (source,) = [one["id"] for one in client.job(job_id)["vertices"] if one["name"].startswith("Source")]
    path = f"/jobs/{job_id}/vertices/{source}/subtasks/metrics"
    names = [one["id"] for one in client.transport.get_json(path) if one["id"].endswith(".pendingRecords")]
    return float(client.transport.get_json(f"{path}?get={names[0]}&agg=sum")[0]["sum"]) if names else float("nan")


def test_chained_and_fanning_sql_jobs_are_read_right_and_only_the_one_in_need_grows(world, local_cluster):
    """q2 is one vertex and gets half more than a subtask can do; q3, whose source filters and fans out, has enough."""
    client = JobClient(local_cluster.rest_url, read_timeout_s=60.0)
    jar = client.upload_jar(build_nexmark())
    loads = {"q2": OVERLOAD * QUERIES["q2"].unit_per_s, "q3": CALM * QUERIES["q3"].unit_per_s}
    ids = {
        name: submit_query(client, local_cluster.work_dir, QUERIES[name].options(steady(rate)), jar_id=jar)
        for name, rate in loads.items()
    }
    try:
        wait_until_running(client, list(ids.values()))
        output = world.out / "controller.log"
        # What came due while the jobs were deployed is worked off first: a join that catches up is rightly busy.
        assert wait_until(lambda: pending(client, ids["q3"]) < 0.1 * loads["q3"], 120)
        time.sleep(3 * WINDOW_S)
        with controlling({}, output):
            lake = world.out / "lake"
            assert wait_until(lambda: read_log(lake, verb="confirm", job="q2"), 240), output.read_text()[-3000:]
            assert wait_until(lambda: pending(client, ids["q2"]) < loads["q2"], 240), "the backlog is not worked off"
            rates = measure_arrivals(client, ids, 40.0)
            wanted = read_log(lake, verb="rescale")
        assert {row["job"] for row in wanted} == {"q2"}, wanted
        assert max(client.upper_bounds(ids["q2"]).values()) in {2, 3, 4}
        assert set(client.upper_bounds(ids["q3"]).values()) == {1}
        for name, rate in loads.items():
            assert rates[name] == pytest.approx(rate, rel=0.05), name
    finally:
        for job_id in ids.values():
            client.cancel(job_id)


def measure_arrivals(client: JobClient, ids: dict[str, str], seconds: float) -> dict[str, float]:
    """Return job -> records/s that arrive, as the windows of Tidewise have them."""
    source = RestSource(client, CLUSTER, time.time)
    history = PollHistory({CLUSTER: WINDOW_S}, polls=100, settle_s=0)
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        history.add(source.poll().records)
        time.sleep(2.5)
    windows, result = history.windows(time.time()), dict[str, float]()
    for number, recorded in enumerate(history.jobs()):
        if recorded.job_id in ids.values() and recorded.graph is not None:
            observed = windows.observations(number)
            place = recorded.graph.position(recorded.graph.sources[0])
            rates = observed.target_data_rate_per_s[~observed.disturbed, place]
            result[recorded.job] = float(np.nanmean(rates))
    return result
