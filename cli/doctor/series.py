"""Checks of a Prometheus-compatible server: which series of Flink's reporter are missing for which job."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from cli.doctor.findings import Finding, error, list_names, ok, warning
from cli.doctor.probe import Probe, ProbeError

PART = "Prometheus"
TASK = "flink_taskmanager_job_task_"
# What rates, capacity, parallelism and restarts come from; without one of them a job cannot be observed.
_TASK_METRICS = ("numRecordsIn", "numRecordsOut", "busyTimeMsPerSecond", "backPressuredTimeMsPerSecond")
NEEDED = (*(f"{TASK}{name}" for name in _TASK_METRICS), "flink_jobmanager_job_numRestarts")
USEFUL = (f"{TASK}operator_pendingRecords", "flink_jobmanager_job_lastCheckpointDuration")
LABELS = ("job_name", "task_id", "subtask_index")
JOB = "job_name"


def check_series(probe: Probe, jobs: Collection[str] = ()) -> list[Finding]:
    """Return which series are missing.

    Args:
        probe: of the server, its prefix included.
        jobs: names of the jobs to look for, as Flink has them; empty for those that the server knows.
    """
    try:
        found = {name: _count_by_job(probe, name) for name in (*NEEDED, *USEFUL)}
    except ProbeError as problem:
        return [error(PART, problem.check, str(problem), problem.remedy)]
    except SeriesError as problem:
        return [error(PART, "address", str(problem), problem.remedy)]
    known = {job for counts in found.values() for job in counts}
    wanted = {_as_label(job) for job in jobs} or known
    first = ok(PART, "address", f"{probe.url} replies, with {len(known)} jobs")
    if not wanted:
        remedy = (
            "set metrics.reporter.prom.factory.class in Flink's configuration, and scrape JobManager and TaskManagers"
        )
        return [first, error(PART, "series", f"no series of Flink's reporter ({NEEDED[0]})", remedy)]
    return [first, *(_judge_job(job, found) for job in sorted(wanted)), _check_labels(probe)]


class SeriesError(RuntimeError):
    """The server refuses a query; ``remedy`` says what to do."""

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy = remedy


def query(probe: Probe, expression: str) -> list[dict[str, Any]]:
    """Return the result of an instant query.

    Raises:
        ProbeError: no reply.
        SeriesError: the server refuses, or is no Prometheus.
    """
    reply = probe.get(f"/api/v1/query?{urlencode({'query': expression})}")
    if reply.status in {401, 403}:
        raise SeriesError(f"{probe.url} refuses with {reply.status}", "give its user or tenant the right to query")
    if not reply.is_ok or reply.payload.get("status") != "success":
        raise SeriesError(
            f"{probe.url}/api/v1/query replies with {reply.status}, and not as Prometheus does",
            "write the address with the prefix (/prometheus for Mimir)",
        )
    return list(reply.payload["data"]["result"])


def _count_by_job(probe: Probe, name: str) -> dict[str, int]:
    found = query(probe, f"count by ({JOB}) ({name})")
    return {str(one["metric"].get(JOB, "")): int(float(one["value"][1])) for one in found}


def _judge_job(job: str, found: Mapping[str, Mapping[str, int]]) -> Finding:
    check = f"series of {job}"
    missing = [name for name in NEEDED if not found[name].get(job)]
    if missing:
        text = f"missing: {', '.join(missing)}"
        return error(PART, check, text, _remedy_for(missing))
    lacking = [name for name in USEFUL if not found[name].get(job)]
    if lacking:
        return warning(
            PART, check, f"missing: {', '.join(lacking)}", "backlogs or checkpoint ages are not known without"
        )
    return ok(PART, check, f"all {len(NEEDED) + len(USEFUL)} are there")


def _remedy_for(missing: Sequence[str]) -> str:
    if all(name.startswith(TASK) for name in missing) and len(missing) > 2:
        return "scrape the TaskManagers, too: each has a port of its own (metrics.reporter.prom.port)"
    if all(name.startswith("flink_jobmanager") for name in missing):
        return "scrape the JobManager, too"
    return "is a relabelling or metrics.reporter.prom.filter.excludes dropping them?"


def _check_labels(probe: Probe) -> Finding:
    try:
        found = query(probe, f"count by ({', '.join(LABELS)}) ({NEEDED[0]})")
    except (ProbeError, SeriesError) as problem:
        return error(PART, "labels", str(problem), "run the doctor again")
    missing = [label for label in LABELS if any(label not in one["metric"] for one in found)]
    if missing:
        remedy = "leave Flink's labels in the scrape configuration's relabelling"
        return error(PART, "labels", f"series lack {list_names(missing)}: subtasks cannot be told apart", remedy)
    return ok(PART, "labels", ", ".join(LABELS))


def _as_label(job: str) -> str:
    """Return a name as Flink's reporter writes it."""
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_:") else "_" for letter in job)
