"""The jobs: two queries of Nexmark, and a DataStream job with a side output; their sinks count what comes."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.live.load_window import Trace
from cli.java_build import java_tool
from lab.local_flink.build import FLINK_HOME, build_nexmark
from lab.local_flink.cluster import ClusterOptions
from lab.local_flink.job_client import JobClient
from lab.local_flink.load import ENRICH, LoadOptions, LoadTopology, submit_load
from lab.local_flink.nexmark import QUERIES, NexmarkQuery, submit_query

_SLOWER = 4
"""Each record of a query waits longer than in `make nexmark`: two cores have time left with all slots at work."""
_ORDERS = "orders"
_ORDER_WAITS_US, _KEPT_ONE_IN = 4000, 2
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


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job at a size that two cores serve.

    Attributes:
        name: of it.
        costly: with what the name of the vertex begins that limits it.
        unit_per_s: events/s at which that vertex is about half busy with one subtask.
        query: of Nexmark; None: the DataStream job, whose source filters and sends some orders over a side output.
    """

    name: str
    costly: str
    unit_per_s: float
    query: NexmarkQuery | None

    def submit(
        self,
        client: JobClient,
        folder: Path,
        trace: Trace,
        parallelism: int,
        *,
        start_ms: int = 0,
        savepoint: str = "",
    ) -> str:
        """Start it, every vertex with the same parallelism; returns its id. The JobManager must see the folder.

        Args:
            client: of the cluster.
            folder: where its trace is written.
            trace: (second, events/s).
            parallelism: of every vertex.
            start_ms: epoch milliseconds of the trace's second 0; 0: now.
            savepoint: that it goes on from; empty: it begins.

        Raises:
            ValueError: the DataStream job is to go on from a savepoint.
        """
        if self.query is None:
            if start_ms or savepoint:
                raise ValueError(f"{self.name} begins when it is submitted: only queries go on from a savepoint")
            return submit_load(client, folder, _set_orders(trace, parallelism))
        options = replace(
            self.query.options(tuple(trace), self.name, parallelism),
            query=f"{self.name}_arrivals",
            splits=_SPLITS,
            start_ms=start_ms,
        )
        return submit_query(client, folder, options, savepoint=savepoint)

    def count_expected_rows(self, events: int, folder: Path) -> int:
        """Return how many rows come of the first events, computed without Flink.

        Args:
            events: that the source has emitted.
            folder: of the cluster, where the trace is.
        """
        if self.query is None:
            return -(-events // _KEPT_ONE_IN)
        path, trace = f"{build_nexmark()}:{FLINK_HOME / 'lib'}/*", folder / f"trace-{self.name}.csv"
        arguments = [self.name, str(events), self.query.proportions, str(trace)]
        done = subprocess.run(
            [java_tool("java"), "-XX:+UseSerialGC", "-Xmx1g", "-cp", path, _EXPECTED, *arguments],
            capture_output=True,
            text=True,
            check=True,
        )
        return int(done.stdout.split()[-1])


def _slow_down(query: NexmarkQuery) -> LiveJob:
    slower = replace(query, work_us=_SLOWER * query.work_us, unit_per_s=query.unit_per_s / _SLOWER)
    return LiveJob(query.name, query.costly[0], slower.unit_per_s, slower)


def _set_orders(trace: Trace, parallelism: int) -> LoadOptions:
    return LoadOptions(
        _ORDERS,
        trace=tuple((round(at_s), rate_per_s) for at_s, rate_per_s in trace),
        compression=1.0,
        cost_us=10,
        wait_us=_ORDER_WAITS_US,
        parallelism=parallelism,
        splits=_SPLITS,
        counts_in=True,
        form=LoadTopology.COUNTED_SIDE_OUTPUTS,
        keep_one_in=_KEPT_ONE_IN,
    )


QUERY_JOBS = ("q2", "q3")
JOBS: Mapping[str, LiveJob] = {
    **{name: _slow_down(QUERIES[name]) for name in QUERY_JOBS},
    # Of two orders one is kept, of ten of these nine wait for 4 ms.
    _ORDERS: LiveJob(_ORDERS, ENRICH, 250.0, None),
}
