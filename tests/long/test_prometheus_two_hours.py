"""Two hours of a real Flink cluster seen by Prometheus and over REST: a day's load, rescales, a lost TaskManager.

``PROMETHEUS_MINUTES`` makes it shorter.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from local_prometheus import running_prometheus
from small_world import World
from two_recordings import LATER, LIVE, REST, Pace, differences, ingest, record, same_windows

from include.utc import DAY_S
from lab.local_flink.cluster import ClusterOptions, LocalCluster, free_ports
from lab.local_flink.load import AGGREGATE, ENRICH, SOURCE, LoadOptions

LENGTH_S = 60 * float(os.environ.get("PROMETHEUS_MINUTES", "120"))
PACE = Pace(length_s=LENGTH_S, window_s=60, step_s=15, poll_every_s=7.5)
LOAD = LoadOptions(job_name="orders-day", low_per_s=300, high_per_s=2400, compression=DAY_S / LENGTH_S, cost_us=100)

pytestmark = [pytest.mark.long, pytest.mark.timeout(LENGTH_S + 1200)]


@pytest.fixture(scope="module")
def silver(tmp_path_factory):
    """Observations and rescales of the three ways."""
    work = tmp_path_factory.mktemp("both")
    ports = free_ports(6)
    world = World(work / "out", work / "out" / "raw")
    world.out.mkdir()
    with (
        pytest.MonkeyPatch.context() as patch,
        LocalCluster(work / "flink", ClusterOptions.quick(reporter_ports=tuple(ports))) as cluster,
        running_prometheus(work / "prometheus", ports, scrape_every_s=5) as url,
    ):
        for key, value in (PACE.environment | world.environment).items():
            patch.setenv(key, value)

        def rescale(**parallelism):
            return lambda job_id: cluster.client.set_parallelism(job_id, parallelism["to"])

        events = {
            0.2: rescale(to={ENRICH: 2}),
            0.35: rescale(to={ENRICH: 3, AGGREGATE: 2}),
            0.5: lambda job_id: cluster.kill_taskmanager(),
            0.5 + 20 / LENGTH_S: lambda job_id: cluster.start_taskmanager(wait=False),
            0.7: rescale(to={SOURCE: 2, ENRICH: 2}),
            0.85: rescale(to={SOURCE: 1, ENRICH: 1, AGGREGATE: 1}),
        }
        hours = record(cluster, url, world.raw, PACE, LOAD, events)
        cluster.stop()
        yield ingest(world, hours)


@pytest.mark.parametrize("way", [LATER, LIVE])
def test_rates_and_parallelism_are_those_of_rest(silver, way):
    pairs = same_windows(silver[0], way)
    assert len(pairs) >= 4 * (LENGTH_S / PACE.window_s) * 0.6
    assert all(other["parallelism"] == rest["parallelism"] for rest, other in pairs)
    result = differences(pairs)
    print(f"{way}: {len(pairs)} windows, median {np.median(result):.4f}, 95% {np.quantile(result, 0.95):.4f}")
    assert np.quantile(result, 0.95) < 0.03, result[-20:]
    total = {who: sum(pair[who]["observed_processing_rate_per_s"] for pair in pairs) for who in (0, 1)}
    assert total[1] == pytest.approx(total[0], rel=0.01)


@pytest.mark.parametrize("way", [LATER, LIVE])
def test_stops_are_those_of_rest(silver, way):
    def told(cluster):
        rows = sorted((row for row in silver[1] if row["cluster"] == cluster), key=lambda row: row["started_at"])
        return [(row["kind"], dict(row["parallelism_before"]), dict(row["parallelism_after"])) for row in rows]

    observed = told(REST)
    assert [kind for kind, _, _ in observed] == ["rescale", "rescale", "restart", "rescale", "rescale"]
    assert told(way) == observed
