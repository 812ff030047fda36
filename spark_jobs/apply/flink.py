"""Apply one step over REST: ask, send once, confirm what runs, measure the downtime."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from include.control.step_guard import DueStep
from include.flink.client import FlinkClient, FlinkError, FlinkRefused, FlinkUnreachable
from include.flink.endpoints import RESTARTING_STATES, running_parallelism
from include.settings import Apply

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a cluster says of a job before a step.

    Attributes:
        running: its parallelism, of a job that restarts the one it is to come back with; empty when it is neither
            RUNNING nor restarting, None when there is no such job.
        free_slots: of the cluster, beside those that the job has or comes back to; None when it was not asked.
        restarting: whether the job is being brought back.
    """

    running: Mapping[str, int] | None
    free_slots: int | None
    restarting: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a step.

    Attributes:
        status: confirmed, failed, or claimed when it is not known yet and the next run has to ask.
        detail: for a person.
        parallelism: that was seen running last.
        requested_at, confirmed_at: when the request was sent, when the parallelism was first seen; None if never.
        downtime_s: how long the job stood still.
    """

    status: str
    detail: str
    parallelism: Mapping[str, int] | None = None
    requested_at: datetime | None = None
    confirmed_at: datetime | None = None
    downtime_s: float | None = None


def look(client: FlinkClient, job_id: str) -> Seen:
    """Ask the cluster for a job's parallelism and for free slots.

    Raises:
        FlinkUnreachable: the cluster did not reply.
    """
    free = int(client.overview().get("slots-available", 0))
    try:
        job = client.job(job_id)
    except FlinkRefused as refused:
        if refused.status == 404:
            return Seen(None, free)
        raise
    if job["state"] not in RESTARTING_STATES:
        return Seen(running_parallelism(job), free)
    try:
        bounds = _bounds(client, job)
    except FlinkRefused:  # without the adaptive scheduler there are no requirements
        return Seen({}, free)
    # While it waits for slots it has none: those that it had are free, or gone with their TaskManager.
    held = 0 if job["state"] == "RESTARTING" else max(bounds.values(), default=0)
    return Seen(bounds, free - held, restarting=True)


def already_asked(client: FlinkClient, step: DueStep) -> bool:
    """Whether the job's resource requirements are the step's already: it was sent, whoever sent it."""
    return _bounds(client, client.job(step.job_id)) == dict(step.parallelism_to)


def _bounds(client: FlinkClient, job: Mapping[str, Any]) -> dict[str, int]:
    """Return operator -> upper bound of a job's resource requirements."""
    names = {vertex["id"]: vertex["name"] for vertex in job["vertices"]}
    return {names.get(vertex, vertex): bound for vertex, bound in client.upper_bounds(str(job["jid"])).items()}


def send(client: FlinkClient, step: DueStep, options: Apply, clock: Clock) -> Outcome:
    """Send a claimed step once and confirm it."""
    try:
        before = client.job(step.job_id)
        requested_at = clock()
        client.set_parallelism(step.job_id, step.parallelism_to)
    except FlinkUnreachable as error:  # the request may have arrived: the next run asks first
        return Outcome("claimed", f"no reply to the request: {error}")
    except FlinkError as error:
        return Outcome("failed", str(error))
    return confirm(client, step, options, clock, sent=(before, requested_at))


def confirm(
    client: FlinkClient,
    step: DueStep,
    options: Apply,
    clock: Clock,
    *,
    sent: tuple[Mapping[str, Any], datetime] | None = None,
) -> Outcome:
    """Poll until the job runs at the step's parallelism, or the time limit passes.

    Flink answers 200 also to requirements that it cannot fulfil, so only what runs counts.

    Args:
        client: of the cluster.
        step: what is to run.
        options: limits of polling.
        clock: the stage's time.
        sent: the job as it was before the request, and when that was sent; None when another run sent it.
    """
    before, requested_at = sent or ({}, None)
    started, down_since, seen = time.monotonic(), None, "nothing"
    running: dict[str, int] = {}
    while True:
        try:
            job = client.job(step.job_id)
            running = running_parallelism(job)
            seen = str(running or f"job {job['state']}, not all vertices RUNNING")
            down_since = down_since if running or down_since is not None else time.monotonic()
        except FlinkError as error:
            running, seen = {}, str(error)
        if running and running == dict(step.parallelism_to):
            outage_s = time.monotonic() - down_since if down_since is not None else None
            # A job that was down already stood still for another reason.
            own = sent is not None and before.get("state") == "RUNNING"
            downtime_s = _longest(outage_s, _downtime_s(before, job)) if own else None
            return Outcome("confirmed", "runs as planned", running, requested_at, clock(), downtime_s)
        if time.monotonic() - started >= options.confirm_timeout_s:
            detail = f"after {options.confirm_timeout_s:g} s the cluster shows {seen}; are there enough slots?"
            return Outcome("failed", detail, running or None, requested_at)
        time.sleep(options.poll_every_s)


def _downtime_s(before: Mapping[str, Any], after: Mapping[str, Any]) -> float | None:
    """Return the time from leaving RUNNING to RUNNING again by the job's own timestamps, None when they do not tell."""
    was = int(before.get("timestamps", {}).get("RUNNING", 0))
    stamps = {state: int(at) for state, at in after.get("timestamps", {}).items()}
    again = stamps.get("RUNNING", 0)
    left = [at for state, at in stamps.items() if state != "RUNNING" and was < at <= again]
    return (again - min(left)) / 1000 if again > was and left else None


def _longest(*seconds: float | None) -> float | None:
    """Return the longer measurement: polls notice the stop late, timestamps may begin with the restart only."""
    return max((value for value in seconds if value is not None), default=None)
