"""The names of jobs where several on a cluster bear one: as in ``silver``, a piece of the job id tells them apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

_SHORT = 8  # digits of an id that tell namesakes apart


def name_jobs(running: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return job id -> name of the jobs that run on one cluster at the same time.

    Args:
        running: Flink's job id and name of each.
    """
    by_name: dict[str, list[str]] = defaultdict(list)
    for job_id, name in running:
        by_name[name].append(job_id)
    named = {}
    for name, ids in by_name.items():
        for job_id in ids:
            alike = sum(other[:_SHORT] == job_id[:_SHORT] for other in ids)
            piece = job_id if alike > 1 else job_id[:_SHORT]
            named[job_id] = name if len(ids) == 1 else f"{name} ({piece})".lstrip(" ")
    return named
