"""The jobs: queries of Nexmark whose sink counts its rows and notes their age."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.live.load_window import Trace
from cli.java_build import java_tool
from lab.local_flink.build import FLINK_HOME, build_nexmark
from lab.local_flink.cluster import ClusterOptions
from lab.local_flink.job_client import JobClient
from lab.local_flink.nexmark import QUERIES, NexmarkQuery, submit_query

JOBS = ("q2", "q3")
_SLOWER = 4
LIVE_QUERIES = {
    name: replace(QUERIES[name], work_us=_SLOWER * QUERIES[name].work_us, unit_per_s=QUERIES[name].unit_per_s / _SLOWER)
    for name in JOBS
}
"""Each record waits longer than in `make nexmark`, so that two cores have time left with all slots at work."""
SLOTS = 16
START_UTILISATION = 0.85
"""Of the slots with which every policy begins, and which the days before kept to."""
TASK_MANAGERS = 2
CHECKPOINT_EVERY_S = 60.0
_SPLITS = 240  # of which any parallelism up to the slots gets nearly equal shares
_EXPECTED = "io.tidewise.nexmark.ExpectedRows"


# Records that wait so long would fill buffers of the usual size for a minute: as many seconds of them as in others.
_BUFFERS: Mapping[str, str] = {"taskmanager.memory.segment-size": "4kb"}
# Flink's own defaults, so they are left out: a machine at its limit must lose no TaskManager by a late heartbeat.
_HEARTBEATS = {"heartbeat.interval": "", "heartbeat.timeout": ""}


def set_cluster(settings: Mapping[str, str] | None = None, *, is_short: bool = False) -> ClusterOptions:
    """Return the cluster of a run.

    Args:
        settings: further ones of Flink.
        is_short: whether rescales are quick to watch; else the cluster is as Flink is by default.
    """
    options = ClusterOptions.quick if is_short else ClusterOptions
    return options(
        slots=SLOTS // TASK_MANAGERS,
        task_managers=TASK_MANAGERS,
        checkpoint_every_s=CHECKPOINT_EVERY_S,
        settings={**_BUFFERS, **_HEARTBEATS, **(settings or {})},
    )


def submit(
    client: JobClient,
    folder: Path,
    query: NexmarkQuery,
    trace: Trace,
    parallelism: int,
    *,
    start_ms: int = 0,
    savepoint: str = "",
) -> str:
    """Start a job, every vertex with the same parallelism; returns its id. The JobManager must see the folder.

    Args:
        client: of the cluster.
        folder: where its trace is written.
        query: what it computes.
        trace: (second, events/s).
        parallelism: of every vertex.
        start_ms: epoch milliseconds of the trace's second 0; 0: now.
        savepoint: that it goes on from; empty: it begins.
    """
    options = replace(
        query.options(tuple(trace), query.name, parallelism),
        query=f"{query.name}_arrivals",
        splits=_SPLITS,
        start_ms=start_ms,
    )
    return submit_query(client, folder, options, savepoint=savepoint)


def count_expected_rows(query: str, events: int, trace: Path) -> int:
    """Return how many rows a query gives for the first events, computed without Flink."""
    path = f"{build_nexmark()}:{FLINK_HOME / 'lib'}/*"
    arguments = [query, str(events), QUERIES[query].proportions, str(trace)]
    done = subprocess.run(
        [java_tool("java"), "-XX:+UseSerialGC", "-Xmx1g", "-cp", path, _EXPECTED, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout.split()[-1])
