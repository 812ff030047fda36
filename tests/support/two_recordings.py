"""One Flink cluster observed in three ways at once: over REST, and by a Prometheus that is read live and afterwards."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from small_world import World

from include.flink.poller import RestSource
from include.flink.raw_format import RawRecord, hour_directory, write_lines
from include.metric_sources.prometheus.client import PrometheusClient
from include.metric_sources.prometheus.graphs import GraphRegistry
from include.metric_sources.prometheus.known_runs import read_runs
from include.metric_sources.prometheus.source import LivePrometheusSource, PrometheusSource
from include.settings.clusters import Cluster
from include.settings.sources import Prometheus
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.utc import Interval, ceil_hour, floor_hour
from lab.local_flink.cluster import LocalCluster
from lab.local_flink.load import LoadOptions, submit_load

REST, LIVE, LATER = "rest", "prom_live", "prom_later"  # the three clusters that ingestion sees
RATES = ("observed_processing_rate_per_s", "observed_output_rate_per_s", "target_data_rate_per_s")


@dataclass(frozen=True)
class Pace:
    """Lengths of time of a recording, seconds."""

    length_s: float
    window_s: int
    step_s: int
    poll_every_s: float

    @property
    def environment(self) -> dict[str, str]:
        """Variables that tell ingestion the windows, and that few of them are disturbed."""
        windows = {f"TIDEWISE__CLUSTERS__{name}__WINDOW_S": str(self.window_s) for name in (REST, LIVE, LATER)}
        return windows | {"TIDEWISE__INGEST__SETTLE_S": str(self.window_s // 2)}


def record(
    cluster: LocalCluster, prometheus: str, raw: Path, pace: Pace, load: LoadOptions, events: Mapping[float, Callable]
) -> Interval:
    """Run a job, carry out the events (share of the length -> what to do with the job), and write all raw files."""
    job_id = submit_load(cluster.client, cluster.work_dir, load)
    cluster.client.wait_for_parallelism(job_id, {}, timeout_s=120)
    server = Prometheus(url=prometheus, step_s=pace.step_s, max_sample_age_s=2 * pace.step_s)
    settings = Cluster(window_s=pace.window_s, prometheus=server, rest_url=cluster.rest_url, poll_every_s=1)
    live = LivePrometheusSource(
        PrometheusClient(LIVE, server), LIVE, settings, GraphRegistry(cluster.client), clock=time.time, raw_root=raw
    )
    rest = RestSource(cluster.client, REST, time.time)
    result: list[RawRecord] = []
    started, waiting, turn = time.time(), dict(events), 0
    while (elapsed_s := time.time() - started) < pace.length_s:
        for share in [share for share in waiting if elapsed_s >= share * pace.length_s]:
            waiting.pop(share)(job_id)
        result += rest.poll().records
        if turn % 2 == 0:
            live.write(live.poll(), raw, time.time())
        turn += 1
        time.sleep(max(0.0, started + turn * pace.poll_every_s - time.time()))
    hours = Interval(
        floor_hour(datetime.fromtimestamp(started, UTC)), ceil_hour(datetime.fromtimestamp(time.time(), UTC))
    )
    _write_by_hour(raw, REST, result)
    later = PrometheusSource.of(LATER, settings)
    hour = hours.start
    while hour < hours.end:
        records = later.records_of_hour(later.fetch_hours(hour, 1), hour, read_runs(raw, LATER, hour))
        _write_by_hour(raw, LATER, [one for one in records if one.job_id in (None, job_id)])
        hour += timedelta(hours=1)
    cluster.client.cancel(job_id)
    return hours


def _write_by_hour(raw: Path, cluster: str, records: Iterable[RawRecord]) -> None:
    by_hour: dict[datetime, list[RawRecord]] = {}
    for one in records:
        by_hour.setdefault(floor_hour(datetime.fromtimestamp(one.observed_at_ms / 1000, UTC)), []).append(one)
    for hour, own in by_hour.items():
        write_lines(hour_directory(raw, cluster, hour) / "recorded.jsonl.gz", (one.to_line() for one in own))


def ingest(world: World, hours: Interval) -> tuple[list[dict], list[dict]]:
    """Ingest the recording; returns the rows of silver.observations and silver.rescales."""
    request = StageRequest(Stage.INGEST, hours.end, hours.start, hours.end)
    counts = world.complete(request, world.out / "ingest.log")
    assert counts["quarantined"] == 0, counts
    tables = world.rows()
    return tuple([json.loads(row) for row in tables[name]] for name in ("silver.observations", "silver.rescales"))


def same_windows(observations: list[dict], other: str) -> list[tuple[dict, dict]]:
    """Pairs of undisturbed rows of one operator and window, over REST and in another way."""
    by_key: dict[tuple, dict[str, dict]] = {}
    for row in observations:
        if not row["disturbed"]:
            by_key.setdefault((row["operator"], row["window_start"]), {})[row["cluster"]] = row
    return [(rows[REST], rows[other]) for rows in by_key.values() if REST in rows and other in rows]


def differences(pairs: list[tuple[dict, dict]]) -> list[float]:
    """Relative differences of all rates that both know, largest last."""
    result = [
        abs(rest[rate] - other[rate]) / max(rest[rate], 1.0)
        for rest, other in pairs
        for rate in RATES
        if rest[rate] is not None and other[rate] is not None
    ]
    return sorted(result)
