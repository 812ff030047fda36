"""One look at one job: its memory meets a newer plan, the state machine decides, and a row says what goes out."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pandas as pd
from pyspark.broadcast import Broadcast

from include.control.watching import WATCHED, unseen_after
from include.domain.graph import GraphError
from include.settings import Settings
from include.utc import format_utc
from models.bundle import BundleError, FleetBundle
from models.job_models import RecoveryModel
from models.policies.memory import dump
from models.policies.tidewise.pending_steps import PendingStep
from models.policies.tidewise.reactive_controller import accept_plan, decide_without_windows, drop_plan, evaluate_job
from models.policies.tidewise.snapshot import Snapshot
from models.policies.tidewise.tidewise_memory import ControllerMemory, ReactiveDecision
from models.policies.tidewise.tidewise_policy import Planner
from models.recovery import UNTRAINED
from spark_jobs.job_inputs.job_state import graph_of
from spark_jobs.job_inputs.policy_memory import recall
from spark_jobs.job_inputs.windows import WINDOW, observations_of
from spark_jobs.watch.seen import is_up

log = logging.getLogger(__name__)

ROW_SCHEMA = """
    cluster STRING, job STRING, job_id STRING, decision STRING, step_id STRING, held_step_id STRING, apply_at_s BIGINT,
    valid_until_s BIGINT, parallelism_from STRING, parallelism_to STRING, slots_from INT, slots INT, reason STRING,
    seen BOOLEAN, planned BOOLEAN, observations_until_s BIGINT, plan_as_of_s BIGINT, memory STRING
"""
COLUMNS = [column.split()[0] for column in ROW_SCHEMA.replace("\n", " ").split(",")]
Row = dict[str, Any]


class NotSeenError(Exception):
    """Nothing fresh is known of a job; the message says what is missing."""


@dataclass(frozen=True)
class WatchTask:
    """What all looks of a run share; shipped to the executors once.

    Attributes:
        settings: of the run.
        as_of: the moment of looking.
        bundle: models of the fleet, for downtimes; None when there is no champion.
    """

    settings: Settings
    as_of: datetime
    bundle: Broadcast[FleetBundle] | None

    @property
    def as_of_s(self) -> int:
        """Epoch seconds of the moment of looking, rounded up."""
        return math.ceil(self.as_of.timestamp())

    def recovery(self, cluster: str, job: str) -> RecoveryModel:
        """Return how long the job's rescales and restarts are expected to take."""
        try:
            if self.bundle is not None:
                found: RecoveryModel = self.bundle.value.for_job(cluster, job).recovery
                return found
        except BundleError:  # a job that no training saw
            log.info("%s/%s is in no model yet", cluster, job)
        return UNTRAINED


@dataclass(frozen=True, slots=True)
class JobView:
    """One row of :func:`spark_jobs.watch.inputs.job_views`; None for what is not known.

    Attributes:
        job_id: as last ingested.
        operators: the graph.
        seen_job_id, state, polled_at_s, running, restarting, windows: see :func:`spark_jobs.watch.seen.what_is_seen`.
        plan_as_of_s, steps: see :func:`spark_jobs.watch.inputs.newest_steps`.
        plan_memory: what that plan left for the net; None when it was refused.
        look_memory, look_plan_as_of_s: what the look before left, and which plan it knew.
    """

    cluster: str
    job: str
    job_id: str
    operators: list[dict[str, Any]]
    seen_job_id: str | None = None
    state: str | None = None
    polled_at_s: int | None = None
    running: Mapping[str, int] | None = None
    restarting: bool = False
    windows: str | None = None
    plan_as_of_s: int | None = None
    steps: tuple[Mapping[str, Any], ...] = ()
    plan_memory: str | None = None
    look_memory: str | None = None
    look_plan_as_of_s: int | None = None

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> JobView:
        """Read a row as pandas gives it, with NaN for null."""
        known = {str(name): value for name, value in row.items() if not pd.isna(value)}
        for name in ("polled_at_s", "plan_as_of_s", "look_plan_as_of_s"):
            if name in known:
                known[name] = int(known[name])
        for name in ("operators", "running"):
            if name in known:
                known[name] = json.loads(known[name])
        return cls(**known | {"steps": tuple(json.loads(known.get("steps", "[]")))})


def watcher(task: WatchTask) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return the function that Spark applies to the rows of each job."""

    def watch(views: pd.DataFrame) -> pd.DataFrame:
        rows = [look_row(task, JobView.of(row)) for row in views.to_dict("records")]
        return pd.DataFrame(rows, columns=COLUMNS, dtype=object)

    return watch


def look_row(task: WatchTask, view: JobView) -> Row:
    """Return the row of one job at an evaluation."""
    memory = memory_of(task, view)
    seen_until_s = None
    try:
        snapshot = take_snapshot(task, view)
        seen = snapshot.observations
        seen_until_s = int(seen.window_start_s[-1]) + seen.window_s if len(seen) else None
        told, after = evaluate_job(snapshot, memory)
        is_seen = True
    except NotSeenError as error:
        log.info("%s/%s is not seen: %s", view.cluster, view.job, error)
        (told, after), is_seen = decide_without_windows(memory, task.as_of_s), False
    except Exception as error:  # one job's look must not keep the others from theirs
        log.exception("evaluation of %s/%s", view.cluster, view.job)
        (told, after), is_seen = decide_without_windows(memory, task.as_of_s), False
        told = replace(told, reason=f"the evaluation failed ({type(error).__name__}: {error}); {told.reason}")
    return {
        "cluster": view.cluster,
        "job": view.job,
        "job_id": view.seen_job_id or view.job_id,
        "reason": told.reason,
        "seen": is_seen,
        "planned": memory.planned,
        "observations_until_s": seen_until_s,
        "plan_as_of_s": view.plan_as_of_s,
        "memory": dump(after),
        "held_step_id": _held(task, view, after),
        **_released(task, view, told),
    }


def memory_of(task: WatchTask, view: JobView) -> ControllerMemory:
    """Return the memory of the look before, with a newer plan accepted.

    The net's memory has this one writer; a plan hands over its steps and what it learnt. So neither overwrites what the
    other knows, whichever ends first.
    """
    planner = Planner()
    of_look = recall(planner, WATCHED, view.look_memory, WATCHED) if view.look_memory else None
    of_plan = recall(planner, WATCHED, view.plan_memory, WATCHED) if view.plan_memory else None
    memory = of_look or of_plan or planner.first_memory()
    if of_plan is None or not of_plan.planned or _is_old(task, view):
        return drop_plan(memory)
    if of_look is not None and view.plan_as_of_s == view.look_plan_as_of_s:
        return memory
    if (of_plan.seen_until_s or 0) > (memory.seen_until_s or 0):  # the looks missed what ingestion has seen
        memory = replace(memory, seen_until_s=of_plan.seen_until_s, histories=of_plan.histories)
    return accept_plan(memory, of_plan.due)


def _is_old(task: WatchTask, view: JobView) -> bool:
    return task.as_of_s - (view.plan_as_of_s or 0) > 3600 * task.settings.apply.max_plan_age_h


def take_snapshot(task: WatchTask, view: JobView) -> Snapshot:
    """Return what is seen of a job.

    Raises:
        NotSeenError: its metrics are not fresh, or are not those of the graph that is known.
    """
    oldest_s = task.as_of_s - unseen_after(task.settings).total_seconds()
    if view.polled_at_s is None or view.state is None or view.polled_at_s < oldest_s:
        raise NotSeenError("no poll of it lately")
    try:
        graph = graph_of(view.operators)
    except GraphError as error:
        raise NotSeenError(str(error)) from error
    running = dict(view.running or {})
    up = is_up(view.state)
    if (up or view.restarting) and set(running) != set(graph.names):
        raise NotSeenError("its operators are not those of the graph that was ingested last")
    return Snapshot(
        now_s=task.as_of_s,
        graph=graph,
        running=running,
        up=up,
        restarting=view.restarting,
        observations=observations_of(graph, _windows(view.windows)),
        slots_max=task.settings.cluster(view.cluster).slots_max,
        options=task.settings.planner,
        recovery=task.recovery(view.cluster, view.job),
    )


def _released(task: WatchTask, view: JobView, told: ReactiveDecision) -> Row:
    """Return the columns of the step that goes out, if any."""
    running = dict(view.running or {})
    now: Row = {
        "decision": "wait",
        "parallelism_from": _text(running) if running else None,
        "slots_from": max(running.values(), default=None),
    }
    if told.wanted is None:
        return now
    wanted = dict(told.wanted)
    target = now | {"parallelism_to": _text(wanted), "slots": max(wanted.values())}
    if told.due is not None:
        # None where the plan was replaced meanwhile: the steps of the new one are looked at next time.
        own = _id_of(view, told.due)
        return target | {"decision": "due", "step_id": own, "apply_at_s": told.due.apply_at_s} if own else now
    if wanted == running:
        return now
    return target | {
        "decision": "net",
        "step_id": step_id(view, task.as_of, target["parallelism_to"]),
        "apply_at_s": task.as_of_s,
        "valid_until_s": task.as_of_s + task.settings.planner.timing.apply_every_s,
    }


def _held(task: WatchTask, view: JobView, memory: ControllerMemory) -> str | None:
    """Return the id of the step that is due and stays in the memory."""
    due_steps = [step for step in memory.due if step.apply_at_s <= task.as_of_s]
    return _id_of(view, due_steps[-1]) if due_steps else None


def _id_of(view: JobView, due: PendingStep) -> str | None:
    """Return the id under which the newest plan has a step."""
    wanted = (due.apply_at_s, dict(due.parallelism))
    return next((one["step_id"] for one in view.steps if (one["apply_at_s"], one["parallelism_to"]) == wanted), None)


def step_id(view: JobView, as_of: datetime, parallelism_to: str) -> str:
    """Return the id of a step of the net's own: the same look made again has the same."""
    parts = ("look", view.cluster, view.job, parallelism_to, format_utc(as_of))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _text(parallelism: Mapping[str, int]) -> str:
    return json.dumps(dict(parallelism), sort_keys=True)


def _windows(text: str | None) -> pd.DataFrame:
    """Return the windows that :mod:`spark_jobs.watch.seen` wrote; a value that is null there is NaN."""
    return pd.DataFrame(json.loads(text or "[]")).reindex(columns=list(WINDOW))
