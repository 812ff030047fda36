"""Silver from a real Prometheus that scrapes a real Flink cluster, against silver from REST of the same minutes."""

from __future__ import annotations

import pytest
from local_prometheus import running_prometheus
from small_world import World
from two_recordings import LATER, LIVE, REST, Pace, differences, ingest, record, same_windows

from lab.local_flink.cluster import ClusterOptions, LocalCluster, free_ports
from lab.local_flink.load import ENRICH, LoadOptions

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1200)]
# Both ways count the same records at other moments: over two minutes these are few of all, over seconds many.
PACE = Pace(length_s=780, window_s=120, step_s=10, poll_every_s=2.5)
# The first window with the job's start is disturbed, and windows begin at full minutes of the clock, not of the test:
# so much time before and after the rescale has an undisturbed window whatever the minute.
RESCALED_AFTER = 0.54
LOAD = LoadOptions(job_name="steady-orders", low_per_s=800, high_per_s=800, cost_us=100)


@pytest.fixture(scope="module")
def silver(tmp_path_factory):
    """Observations and rescales of the three ways; the job is rescaled once."""
    work = tmp_path_factory.mktemp("both")
    ports = free_ports(4)
    options = ClusterOptions.quick(reporter_ports=tuple(ports))
    world = World(work / "out", work / "out" / "raw")
    world.out.mkdir()
    with (
        pytest.MonkeyPatch.context() as patch,
        LocalCluster(work / "flink", options) as cluster,
        running_prometheus(work / "prometheus", ports) as url,
    ):
        for key, value in (PACE.environment | world.environment).items():
            patch.setenv(key, value)

        def rescale(job_id):
            cluster.client.set_parallelism(job_id, {ENRICH: 2})

        hours = record(cluster, url, world.raw, PACE, LOAD, {RESCALED_AFTER: rescale})
        cluster.stop()  # its processors are wanted
        yield ingest(world, hours)


@pytest.mark.parametrize("way", [LATER, LIVE])
def test_rates_are_those_of_rest(silver, way):
    pairs = same_windows(silver[0], way)
    assert len(pairs) >= 8
    result = differences(pairs)
    assert result[-1] < 0.03, result[-5:]


@pytest.mark.parametrize("way", [LATER, LIVE])
def test_parallelism_and_busy_time_are_those_of_rest(silver, way):
    pairs = same_windows(silver[0], way)
    assert {rest["parallelism"] for rest, _ in pairs if rest["operator"] == ENRICH} == {1, 2}
    for rest, other in pairs:
        assert other["parallelism"] == rest["parallelism"]
        assert other["busy_share"] == pytest.approx(rest["busy_share"], abs=0.05)


@pytest.mark.parametrize("way", [LATER, LIVE])
def test_the_rescale_is_that_of_rest(silver, way):
    (observed,) = [row for row in silver[1] if row["cluster"] == REST]
    (reported,) = [row for row in silver[1] if row["cluster"] == way]
    assert (reported["kind"], reported["job"]) == (observed["kind"], observed["job"]) == ("rescale", LOAD.job_name)
    for column in ("parallelism_before", "parallelism_after"):
        assert dict(reported[column]) == dict(observed[column])
    assert reported["downtime_s"] == pytest.approx(observed["downtime_s"], abs=2 * PACE.step_s)
    assert reported["running_at"][:18] == observed["running_at"][:18]  # within seconds
    assert reported["state_size_bytes"] is not None
