"""A live Flink cluster for the tests of one file. Tests here follow it in real time: nothing should run beside them."""

from dataclasses import dataclass

import pytest

from cli.local_flink.cluster import LocalCluster
from cli.local_flink.load import LoadOptions, submit_load
from include.flink.client import FlinkClient


@dataclass(frozen=True)
class LiveFlink:
    """A running cluster with the load job RUNNING at parallelism 1."""

    cluster: LocalCluster
    client: FlinkClient
    rest_url: str
    job_id: str
    job_name: str
    options: LoadOptions


@pytest.fixture(scope="module")
def flink_cluster(tmp_path_factory):
    """Start Flink and the load job (about 20 s); everything is gone at the end of the file."""
    work_dir = tmp_path_factory.mktemp("flink")
    options = LoadOptions(low_per_s=400, high_per_s=1200, compression=960)
    with LocalCluster(work_dir) as cluster:
        job_id = submit_load(cluster.client, work_dir, options)
        cluster.client.wait_for_parallelism(job_id, {}, timeout_s=60)
        yield LiveFlink(cluster, cluster.client, cluster.rest_url, job_id, options.job_name, options)
    assert cluster.process_ids == []
