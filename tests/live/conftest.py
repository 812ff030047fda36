"""One live Flink cluster for all tests of this directory, and a job on it for each file."""

from collections.abc import Iterator

import pytest
from live_flink import LiveFlink, job_on

from lab.local_flink.cluster import ClusterOptions, LocalCluster
from lab.local_flink.load import LoadOptions


@pytest.fixture(scope="package")
def local_cluster(tmp_path_factory) -> Iterator[LocalCluster]:
    """Start Flink (about 20 s); everything is gone after the last test of this folder."""
    with LocalCluster(tmp_path_factory.mktemp("flink"), ClusterOptions.quick()) as cluster:
        yield cluster
    assert cluster.process_ids == []


@pytest.fixture(scope="module")
def flink_cluster(local_cluster) -> Iterator[LiveFlink]:
    """The cluster with the job of its tests."""
    options = LoadOptions(low_per_s=400, high_per_s=1200, compression=960, cost_us=10, wait_us=390)
    with job_on(local_cluster, options) as flink:
        yield flink


# One subtask of `enrich` takes some 2,000 records/s at most: the plan has to give it more than one.
OVERLOAD = LoadOptions(job_name="overloaded", low_per_s=2200.0, high_per_s=2200.0, cost_us=10, wait_us=490)


@pytest.fixture
def overloaded(local_cluster) -> Iterator[LiveFlink]:
    """The cluster with a job that cannot process its load at parallelism 1."""
    with job_on(local_cluster, OVERLOAD) as flink:
        yield flink
