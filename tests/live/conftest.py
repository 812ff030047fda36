"""One live Flink cluster for all tests of this directory, and a job on it for each file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from waiting import wait_until

from cli.local_flink.cluster import LocalCluster
from cli.local_flink.load import LoadOptions, submit_load
from include.flink.client import FlinkClient


@dataclass(frozen=True)
class LiveFlink:
    """A running cluster with a load job RUNNING at parallelism 1."""

    cluster: LocalCluster
    client: FlinkClient
    rest_url: str
    job_id: str
    job_name: str
    options: LoadOptions


@pytest.fixture(scope="session")
def local_cluster(tmp_path_factory) -> Iterator[LocalCluster]:
    """Start Flink (about 20 s); everything is gone at the end of the session."""
    with LocalCluster(tmp_path_factory.mktemp("flink")) as cluster:
        yield cluster
    assert cluster.process_ids == []


@contextmanager
def job_on(cluster: LocalCluster, options: LoadOptions) -> Iterator[LiveFlink]:
    """Run a load job; cancelled at the end."""
    client = cluster.client
    job_id = submit_load(client, cluster.work_dir, options)
    client.wait_for_parallelism(job_id, {}, timeout_s=120)
    yield LiveFlink(cluster, client, cluster.rest_url, job_id, options.job_name, options)
    client.cancel(job_id)
    assert wait_until(lambda: client.job(job_id)["state"] == "CANCELED", 60)


@pytest.fixture(scope="module")
def flink_cluster(local_cluster) -> Iterator[LiveFlink]:
    """The cluster with the job of its tests."""
    with job_on(local_cluster, LoadOptions(low_per_s=400, high_per_s=1200, compression=960)) as flink:
        yield flink


# One subtask of `enrich` takes some 2,000 records/s at most: the plan has to give it more than one.
OVERLOAD = LoadOptions(job_name="overloaded", low_per_s=2200.0, high_per_s=2200.0, cost_us=100, wait_us=400)


@pytest.fixture
def overloaded(local_cluster) -> Iterator[LiveFlink]:
    """The cluster with a job that cannot process its load at parallelism 1."""
    with job_on(local_cluster, OVERLOAD) as flink:
        yield flink
