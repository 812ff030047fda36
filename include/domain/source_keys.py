"""Sources that settings name by ``job/operator``: names of jobs and of operators may both hold slashes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from include.domain.reply_limits import is_hex_id


@dataclass(frozen=True, slots=True)
class SourceName:
    """A source: its job, and its operator's name or vertex id as the settings have it."""

    job: str
    operator: str


def find_source(key: str, jobs: Mapping[str, Collection[str]]) -> SourceName | None:
    """Return the source that a key, ``job/operator`` or ``job/vertex id``, means: of the longest known job that has it.

    A key with a single slash can be read in one way, so it is believed while no job of the cluster is known at all.
    None where no known job has it: :func:`name_nearest` says what was probably meant. Of a job with unknown operators
    there is the name alone.
    """
    readings = list(_readings(key))
    if not jobs:
        return readings[0] if len(readings) == 1 else None
    known = [one for one in readings if one.job in jobs]
    return next((one for one in known if not jobs[one.job] or one.operator in jobs[one.job]), None)


def name_nearest(key: str, jobs: Mapping[str, Collection[str]]) -> str:
    """Return what to write in the place of a key that means no known source."""
    known = sorted(f"{job}/{one}" for job, operators in jobs.items() for one in operators if not is_hex_id(one))
    folded = {one.lower(): one for one in known}
    near = [folded[one] for one in get_close_matches(key.lower(), folded, n=1, cutoff=0.5)]
    of_job = next((one.job for one in _readings(key) if one.job in jobs), None)
    same_job = [one for one in known if of_job is not None and one.startswith(f"{of_job}/")]
    shown = near or same_job[:3] or known[:3] or sorted(jobs)[:3]
    quoted = [f'"{one}"' for one in shown]
    return f"write {' or '.join(quoted)}" if quoted else "no job is known yet"


def group_operators(rows: Iterable[tuple[str, str, str]]) -> dict[str, set[str]]:
    """Return job -> names and vertex ids of its operators, from rows of job, operator and vertex id."""
    result: dict[str, set[str]] = {}
    for job, operator, vertex_id in rows:
        result.setdefault(job, set()).update((operator, vertex_id))
    return result


def _readings(key: str) -> Iterator[SourceName]:
    """Yield the ways to take a key apart, the longest job first."""
    for place in range(len(key) - 1, -1, -1):
        job, operator = key[:place], key[place + 1 :]
        if key[place] == "/" and job.strip() and operator.strip():
            yield SourceName(job, operator)
