"""The replies of ``/jobs/:jid`` and ``/jobs/:jid/plan``, with the states of Flink's adaptive scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.simulation.rest.template import HOLE, Ids, hash_to_id
from lab.simulation.spec import JobSpec

JOB_STATES = (
    "FAILING",
    "FAILED",
    "CANCELLING",
    "CANCELED",
    "INITIALIZING",
    "FINISHED",
    "SUSPENDED",
    "RECONCILING",
    "CREATED",
    "RUNNING",
    "RESTARTING",
)
TASK_STATES = (
    "CREATED",
    "SCHEDULED",
    "DEPLOYING",
    "INITIALIZING",
    "RUNNING",
    "FINISHED",
    "CANCELING",
    "CANCELED",
    "FAILED",
    "RECONCILING",
)
IO_METRICS = (
    "read-bytes",
    "write-bytes",
    "read-records",
    "write-records",
)
TIME_METRICS = ("accumulated-backpressured-time", "accumulated-idle-time", "accumulated-busy-time")
_TASK_OF_JOB = {"RUNNING": "RUNNING", "RESTARTING": "CANCELING", "CREATED": "CREATED"}


@dataclass(frozen=True, slots=True)
class JobDetails:
    """What ``/jobs/:jid`` tells at one poll; times in epoch milliseconds, text stands for a hole of a template.

    Attributes:
        state: RUNNING, RESTARTING (tasks are cancelled) or CREATED (waiting for its tasks).
        submitted_ms: constant over restarts.
        created_ms, running_ms, restarting_ms: of the job's states, 0 for never.
        parallelism: per operator.
    """

    now_ms: int | str
    duration_ms: int | str
    running_for_ms: int | str
    state: str
    submitted_ms: int
    created_ms: int | str
    running_ms: int | str
    restarting_ms: int | str
    parallelism: Sequence[int | str]


def build_hollow_details(spec: JobSpec, submitted_ms: int) -> JobDetails:
    """Return the details of a running job with a hole for everything that changes."""
    return JobDetails(HOLE, HOLE, HOLE, "RUNNING", submitted_ms, HOLE, HOLE, HOLE, [HOLE] * len(spec.operators))


def list_hole_values(details: JobDetails) -> tuple[int | str, ...]:
    """Return what fills the holes of a job reply made from :func:`build_hollow_details`, in the order of writing."""
    head = (details.duration_ms, details.now_ms, details.created_ms, details.running_ms, details.restarting_ms)
    vertices = [value for p in details.parallelism for value in (p, details.running_ms, details.running_for_ms, p)]
    return (*head, *vertices)


def build_job_reply(spec: JobSpec, ids: Ids, details: JobDetails) -> dict[str, object]:
    """Return the reply of ``/jobs/:jid``.

    While a job waits for its tasks (CREATED) Flink shows a fresh graph: no time but INITIALIZING, parallelism 1.

    Deviation: Flink repeats the plan here and sums up its tasks' I/O.  Both would double the size of a history and say
    nothing new: the plan has a reply of its own, and I/O is given as not yet complete, as Flink does after a start.
    """
    task, fresh = _TASK_OF_JOB[details.state], details.state == "CREATED"
    parallelism: Sequence[int | str] = [1] * len(spec.operators) if fresh else details.parallelism
    times = {
        "INITIALIZING": details.submitted_ms,
        "CREATED": 0 if fresh else details.created_ms,
        "RUNNING": 0 if fresh else details.running_ms,
        "RESTARTING": 0 if fresh else details.restarting_ms,
    }
    vertices = [_vertex(spec, ids, index, parallelism[index], details) for index in range(len(spec.operators))]
    return {
        "jid": ids.job,
        "name": spec.name,
        "isStoppable": False,
        "state": details.state,
        "job-type": "STREAMING",
        "start-time": details.submitted_ms,
        "end-time": -1,
        "duration": details.duration_ms,
        "maxParallelism": -1,
        "now": details.now_ms,
        "timestamps": {state: times.get(state, 0) for state in JOB_STATES},
        "vertices": vertices,
        "status-counts": {state: len(vertices) if state == task else 0 for state in TASK_STATES},
        "pending-operators": 0,
    }


def _vertex(spec: JobSpec, ids: Ids, index: int, p: int | str, details: JobDetails) -> dict[str, object]:
    operator, task = spec.operators[index], _TASK_OF_JOB[details.state]
    alive = task == "RUNNING"
    io = {field: value for name in IO_METRICS for field, value in ((name, 0), (f"{name}-complete", False))}
    return {
        "id": ids.vertices[index],
        "slotSharingGroupId": hash_to_id(ids.job, "slots"),
        "name": operator.name,
        "maxParallelism": operator.max_parallelism,
        "parallelism": p,
        "status": task,
        "start-time": details.running_ms if alive else -1,
        "end-time": -1,
        "duration": details.running_for_ms if alive else -1,
        "tasks": {state: p if state == task else 0 for state in TASK_STATES},
        "metrics": {**io, **dict.fromkeys(TIME_METRICS, 0)},
    }


def _describe(name: str) -> str:
    """Return the description of a vertex as Flink writes it: a chain as a tree of its operators."""
    if " -> (" in name:
        return name + "<br/>"
    return "".join(
        f"{'   ' * (depth - 1)}{'+- ' if depth else ''}{one}<br/>" for depth, one in enumerate(name.split(" -> "))
    )


def build_plan_reply(spec: JobSpec, ids: Ids, parallelism: Sequence[int | str]) -> dict[str, object]:
    """Return the reply of ``/jobs/:jid/plan``: nodes from the sinks up, as Flink lists them."""
    position = {operator.name: index for index, operator in enumerate(spec.operators)}
    nodes = []
    for index in reversed(range(len(spec.operators))):
        operator = spec.operators[index]
        node: dict[str, object] = {
            "id": ids.vertices[index],
            "parallelism": parallelism[index],
            "operator": "",
            "operator_strategy": "",
            "description": _describe(operator.name),
        }
        if operator.upstream:
            node["inputs"] = [
                {
                    "num": number,
                    "id": ids.vertices[position[upstream]],
                    "ship_strategy": operator.ship.value,
                    "exchange": "pipelined_bounded",
                }
                for number, upstream in enumerate(operator.upstream)
            ]
        nodes.append({**node, "optimizer_properties": {}})
    return {"plan": {"jid": ids.job, "name": spec.name, "type": "STREAMING", "nodes": nodes}}
