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
    lake, tables = settings.paths.lake, (CONTROL_LOG, JOB_GRAPHS, PLANS)
    return named.union(*(read_jobs_of(lake, table, since, date.max) for table in tables))


def read_jobs_of(lake: str, table: Table, since: date, until: date) -> set[str]:
    """Return the jobs that have a row of some dates; none where the table cannot be read."""
    try:
        result = LakeTable(lake, table).read(["cluster", "job"], since, until)
    except (DeltaError, OSError):  # not written yet, or not to be read: the other tables may do
        return set()
    pairs: Mapping[str, list[str]] = result.group_by(["cluster", "job"]).aggregate([]).to_pydict()
    return {f"{cluster}/{job}" for cluster, job in zip(pairs["cluster"], pairs["job"], strict=True)}


def check_scope(scope: str, settings: Settings, jobs: set[str]) -> None:
    """Refuse a cluster or job (``cluster/job``) that nobody knows: capitals count.

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
