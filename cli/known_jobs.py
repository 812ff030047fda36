"""The jobs that the lake's tables know, to tell a slip in a name."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches

from deltalake.exceptions import DeltaError

from cli.arguments import UsageError
from include.lake_table import LakeTable
from include.settings import Settings
from include.tables import CONTROL_LOG, JOB_GRAPHS, PLANS, Table

_LOOK_BACK = timedelta(days=14)


class UnknownNameError(UsageError):
    """Nothing has this name; the message has those that are spelt alike."""


def read_known_jobs(settings: Settings, now_s: float) -> set[str]:
    """Return the jobs (``cluster/job``) of the last two weeks, and those that the settings name."""
    named = {*settings.limits.jobs, *settings.planner.policies, *settings.planner.jobs}
    since = (datetime.fromtimestamp(now_s, UTC) - _LOOK_BACK).date()
    return named.union(*(_jobs_of(settings.paths.lake, table, since) for table in (CONTROL_LOG, JOB_GRAPHS, PLANS)))


def _jobs_of(lake: str, table: Table, since: date) -> set[str]:
    try:
        result = LakeTable(lake, table).read(["cluster", "job"], since, date.max)
    except (DeltaError, OSError):  # not written yet, or not to be read: the other tables may do
        return set()
    pairs: Mapping[str, list[str]] = result.group_by(["cluster", "job"]).aggregate([]).to_pydict()
    return {f"{cluster}/{job}" for cluster, job in zip(pairs["cluster"], pairs["job"], strict=True)}


def check_scope(scope: str, settings: Settings, jobs: set[str]) -> None:
    """Refuse a name that nobody knows: capitals count.

    Args:
        scope: a cluster, or ``cluster/job``.
        settings: whose clusters are known.
        jobs: that are known.

    Raises:
        UnknownNameError: with the names that are spelt alike.
    """
    clusters = {*settings.clusters, *(job.partition("/")[0] for job in jobs)}
    cluster, slash, _ = scope.partition("/")
    if cluster not in clusters:
        raise UnknownNameError(f"there is no cluster {cluster!r}; {name_near(cluster, clusters)}")
    if slash and scope not in jobs:
        of_cluster = {job for job in jobs if job.startswith(f"{cluster}/")}
        raise UnknownNameError(f"there is no job {scope!r}; {name_near(scope, of_cluster)}")


def name_near(name: str, known: set[str]) -> str:
    """Return what to write in the place of a name that nobody knows."""
    folded = {one.lower(): one for one in sorted(known)}
    near = [folded[one] for one in get_close_matches(name.lower(), folded, n=3, cutoff=0.5)]
    shown = near or sorted(known)[:5]
    return f"write {' or '.join(map(repr, shown))}" if shown else "none is known yet"
