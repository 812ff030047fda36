"""Jobs of a cluster that feed each other through topics: by their limits, and by the topics of its brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from include.settings.clusters import Cluster
from include.settings.limits import JobLimits


def list_neighbours(job: str, cluster: Cluster, of_jobs: Mapping[str, JobLimits]) -> frozenset[str]:
    """Return the jobs of a cluster that feed a job, or that it feeds."""
    pairs = {*_list_feeds(of_jobs), *_list_topics(cluster, {job, *of_jobs})}
    return frozenset({one for one, fed in pairs if fed == job} | {fed for one, fed in pairs if one == job}) - {job}


def _list_feeds(of_jobs: Mapping[str, JobLimits]) -> Iterator[tuple[str, str]]:
    for job, limits in of_jobs.items():
        for upstream in limits.fed_by:
            yield upstream, job


def _list_topics(cluster: Cluster, jobs: set[str]) -> Iterator[tuple[str, str]]:
    """Yield a job that writes a topic and one that reads it; a key of ``topics`` begins with the name of its job."""
    for brokers in cluster.kafka.values():
        known = jobs | set(brokers.writes)
        for writer, written in brokers.writes.items():
            for key, read in brokers.topics.items():
                if {*written} & {*read}:
                    yield from ((writer, job) for job in known if key.startswith(f"{job}/"))


def find_feed_fault(of_jobs: Mapping[str, JobLimits]) -> str | None:
    """Return which job is said to feed itself, in one line with what to write; None without any."""
    for key, limits in of_jobs.items():
        job = key.partition("/")[2]
        if job in limits.fed_by:
            return f'limits.jobs."{key}".fed_by names the job itself; write the jobs whose topics it reads'
        if twice := next((one for one in limits.fed_by if one.startswith(f"{key.partition('/')[0]}/")), None):
            return (
                f'limits.jobs."{key}".fed_by = "{twice}" names a cluster; jobs of one cluster alone are kept apart, so '
                f'write "{twice.partition("/")[2]}"'
            )
    return None
