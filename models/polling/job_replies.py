"""Replies about a job as typed values: its state and vertices, its graph, checkpoints, failures and own metrics."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from include.domain.graph import MAX_PARALLELISM
from include.domain.quarantine_rules import Rule
from include.flink.job_states import ALIGNED, CHECKPOINT_COMPLETED, RUNNING, STOPPED_STATES
from models.polling.faults import ReplyError, shorten
from models.polling.reply_values import encodable, read_count, read_time_ms, require_object

# Bare NaN and Infinity are no JSON: they are read as the texts that they are.
_DECODER = json.JSONDecoder(parse_constant=str)

Node = tuple[str, tuple[str, ...]]
"""A vertex of a graph and the ids of those that feed it."""


@dataclass(frozen=True, slots=True)
class Vertex:
    """A vertex as a ``job`` reply shows it; parallelism 0 and texts empty where they are not told."""

    vertex_id: str
    name: str
    parallelism: int
    max_parallelism: int
    state: str
    slot_sharing_group: str = ""


@dataclass(frozen=True, slots=True)
class JobReply:
    """What ``/jobs/:jobid`` tells; times in epoch milliseconds.

    Attributes:
        running_ms: when it last came to run; None for never.
        stopped_ms: its latest entries into states in which it does not process.
        submitted_ms: when Flink was given the job; restarts after a failure and rescales leave it as it is.
        job_type: STREAMING or BATCH; empty where Flink does not tell.
        told_at_ms: when the JobManager wrote the reply, by its clock.
    """

    name: str
    state: str
    running_ms: int | None
    stopped_ms: tuple[int, ...]
    vertices: tuple[Vertex, ...]
    submitted_ms: int | None = None
    job_type: str = ""
    told_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job as ``/jobs/overview`` lists it."""

    job_id: str
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class ResourceRequirements:
    """What a job is asked for, as a ``resource-requirements`` reply tells: vertex id -> bound of its parallelism."""

    upper_bounds: Mapping[str, int]
    lower_bounds: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TaskSlots:
    """The task slots of a cluster as an ``overview`` reply shows them.

    Attributes:
        total, free: of all TaskManagers.
    """

    total: int
    free: int


def decode(body: str) -> Any:
    """Return what a body holds.

    Raises:
        ReplyError: it is empty or not JSON.
    """
    text = body.strip()
    if not text:
        raise ReplyError(Rule.EMPTY_BODY, "no body")
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise ReplyError(Rule.MALFORMED_JSON, f"{type(error).__name__}: {shorten(text)}") from error


def read_job(result: object) -> JobReply:
    """Read a ``job`` reply.

    Raises:
        ReplyError: it lacks name, state or vertices, or a vertex has no id of its own.
    """
    reply = require_object(result)
    times = reply.get("timestamps")
    times = times if isinstance(times, dict) else {}
    stopped = (read_time_ms(times.get(state)) for state in STOPPED_STATES)
    return JobReply(
        name=_text(reply, "name"),
        state=_text(reply, "state"),
        running_ms=read_time_ms(times.get(RUNNING)),
        stopped_ms=tuple(at for at in stopped if at is not None),
        vertices=tuple(
            Vertex(
                vertex_id=vertex["id"],
                name=encodable(vertex["name"]) if isinstance(vertex.get("name"), str) else "",
                parallelism=read_count(vertex.get("parallelism")),
                max_parallelism=read_count(vertex.get("maxParallelism")) or MAX_PARALLELISM,
                state=str(vertex.get("status", "")),
                slot_sharing_group=str(vertex.get("slotSharingGroupId") or ""),
            )
            for vertex in _with_ids(reply.get("vertices"), "vertices")
        ),
        submitted_ms=read_time_ms(reply.get("start-time")),
        job_type=_read_type(reply),
        told_at_ms=read_time_ms(reply.get("now")),
    )


def _read_type(reply: Mapping[str, Any]) -> str:
    """Return the job's type, which Flink tells in the reply or in its plan."""
    plan = reply.get("plan")
    reported = reply.get("job-type") or (plan.get("type") if isinstance(plan, dict) else None)
    return reported if isinstance(reported, str) else ""


def read_job_list(result: object) -> tuple[ListedJob, ...]:
    """Read a ``/jobs/overview`` reply; an entry without id, name or state is left out.

    Raises:
        ReplyError: it has no list of jobs.
    """
    jobs = require_object(result).get("jobs")
    if not isinstance(jobs, list):
        raise ReplyError(Rule.MISSING_FIELD, "jobs")
    listed = []
    for job in jobs:
        reported = [job.get(field) if isinstance(job, dict) else None for field in ("jid", "name", "state")]
        texts = [encodable(text) for text in reported if isinstance(text, str)]
        if len(texts) == len(reported):
            listed.append(ListedJob(*texts))
    return tuple(listed)


def read_requirements(result: object) -> ResourceRequirements:
    """Read a ``resource-requirements`` reply; a vertex without both of its bounds is left out.

    Raises:
        ReplyError: this is no object.
    """
    upper, lower = {}, {}
    for vertex_id, requirement in require_object(result).items():
        parallelism = requirement.get("parallelism") if isinstance(requirement, dict) else None
        reported = parallelism if isinstance(parallelism, dict) else {}
        bounds = read_count(reported.get("lowerBound")), read_count(reported.get("upperBound"))
        if all(bounds):
            lower[vertex_id], upper[vertex_id] = bounds
    return ResourceRequirements(upper, lower)


def read_plan(result: object) -> tuple[Node, ...]:
    """Read the graph of a ``plan`` reply, or of the plan that a ``job`` reply of a real cluster holds.

    Raises:
        ReplyError: it has no nodes, or one of them has no id of its own.
    """
    plan = require_object(result).get("plan")
    if not isinstance(plan, dict):
        raise ReplyError(Rule.MISSING_FIELD, "plan")
    nodes = []
    for node in _with_ids(plan.get("nodes"), "plan.nodes"):
        inputs = node.get("inputs")
        edges = inputs if isinstance(inputs, list) else ()
        if not all(isinstance(edge, dict) and isinstance(edge.get("id"), str) for edge in edges):
            raise ReplyError(Rule.WRONG_TYPE, f"inputs of vertex {shorten(node['id'])} without an id")
        nodes.append((node["id"], tuple(edge["id"] for edge in edges)))
    return tuple(nodes)


@dataclass(frozen=True, slots=True)
class CompletedCheckpoint:
    """A checkpoint that a reply lists as completed; times in epoch milliseconds.

    Attributes:
        completed_ms: when.
        began_ms: when its barriers set out that pushed the records before them through the job; None where Flink does
            not tell, and where they overtook some: it was unaligned.
    """

    completed_ms: int
    began_ms: int | None = None


def read_checkpoints(result: object) -> tuple[CompletedCheckpoint, ...]:
    """Return the checkpoints that a reply lists as completed.

    Raises:
        ReplyError: this is no object.
    """
    reply = require_object(result)
    latest, history = reply.get("latest"), reply.get("history")
    listed = list(history) if isinstance(history, list) else []
    if isinstance(latest, dict):
        listed.append(latest.get("completed"))
    done = [one for one in listed if isinstance(one, dict) and one.get("status") == CHECKPOINT_COMPLETED]
    read = ((read_time_ms(one.get("latest_ack_timestamp")), _read_begin_ms(one)) for one in done)
    return tuple(CompletedCheckpoint(at_ms, began_ms) for at_ms, began_ms in read if at_ms is not None)


def _read_begin_ms(checkpoint: Mapping[str, Any]) -> int | None:
    is_aligned = checkpoint.get("checkpoint_type") in ALIGNED
    return read_time_ms(checkpoint.get("trigger_timestamp")) if is_aligned else None


def read_failures(result: object) -> dict[int, str]:
    """Return the failures that an ``exceptions`` reply lists: epoch milliseconds -> first line of the cause.

    Raises:
        ReplyError: this is no object.
    """
    history = require_object(result).get("exceptionHistory")
    entries = history.get("entries") if isinstance(history, dict) else None
    causes: dict[int, str] = {}
    for entry in entries if isinstance(entries, list) else ():
        at_ms = read_time_ms(entry.get("timestamp")) if isinstance(entry, dict) else None
        if at_ms is None:
            continue
        text = next((entry[key] for key in ("stacktrace", "exceptionName") if isinstance(entry.get(key), str)), "")
        cause = encodable(text.partition("\n")[0][:500])
        causes[at_ms] = min(cause, causes.get(at_ms, cause))
    return causes


def read_job_metrics(result: object) -> dict[str, float]:
    """Return a job's own metrics by name; those that are no number are left out.

    Raises:
        ReplyError: this is no list.
    """
    if not isinstance(result, list):
        raise ReplyError(Rule.WRONG_TYPE, f"no list of metrics: {shorten(str(result))}")
    values: dict[str, float] = {}
    for metric in result:
        if not isinstance(metric, dict) or not isinstance(metric.get("id"), str):
            continue
        try:
            value = float(metric["value"])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(value):
            values[metric["id"]] = value
    return values


def read_overview(result: object) -> TaskSlots:
    """Read an ``overview`` reply.

    Raises:
        ReplyError: it does not tell the slots.
    """
    reply = require_object(result)
    total, free = reply.get("slots-total"), reply.get("slots-available")
    if type(total) is not int or type(free) is not int:
        raise ReplyError(Rule.MISSING_FIELD, "slots-total, slots-available")
    if not 0 <= free <= total:
        raise ReplyError(Rule.WRONG_TYPE, shorten(f"{free} of {total} slots are free"))
    return TaskSlots(total, free)


def _text(reply: Mapping[str, Any], field: str) -> str:
    value = reply.get(field)
    if not isinstance(value, str) or not value:
        raise ReplyError(Rule.MISSING_FIELD, field)
    return encodable(value)


def _with_ids(result: object, field: str) -> list[Mapping[str, Any]]:
    """Return a list of objects, each with an id of its own."""
    if not isinstance(result, list):
        raise ReplyError(Rule.MISSING_FIELD, field)
    ids = [one.get("id") if isinstance(one, dict) else None for one in result]
    if not all(isinstance(one, str) and one for one in ids) or len(set(ids)) < len(ids):
        raise ReplyError(Rule.WRONG_TYPE, f"{field} without an id of their own")
    return result
