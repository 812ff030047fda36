"""A job on the live Flink cluster of a test session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from waiting import wait_until

from lab.local_flink.cluster import LocalCluster
from lab.local_flink.job_client import JobClient, running_parallelism
from lab.local_flink.load import LoadOptions, submit_load


@dataclass(frozen=True)
class LiveFlink:
    """A running cluster with a load job RUNNING at parallelism 1."""

    cluster: LocalCluster
    client: JobClient
    rest_url: str
    job_id: str
    job_name: str
    options: LoadOptions


@contextmanager
def job_on(
    cluster: LocalCluster,
    options: LoadOptions,
    is_up: Callable[[Mapping[str, Any]], bool] = lambda job: bool(running_parallelism(job)),
) -> Iterator[LiveFlink]:
    """Run a load job until it is up and then the test; cancelled at the end."""
    client = cluster.client
    job_id = submit_load(client, cluster.work_dir, options)
    assert wait_until(lambda: is_up(client.job(job_id)), 120)
    yield LiveFlink(cluster, client, cluster.rest_url, job_id, options.job_name, options)
    client.cancel(job_id)
    assert wait_until(lambda: client.job(job_id)["state"] == "CANCELED", 60)
