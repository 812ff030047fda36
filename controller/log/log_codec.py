"""An entry of the controller's log as a row of ``ops.control_log`` and back: the decision can be made again from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeVar

from controller.log.control_log import LogEntry, Provenance
from include.lake_table import date_of, maybe_timestamp, timestamp_of
from models.control.bad_steps import effective_mode
from models.control.case import Action, Case, OutcomeCheck, Verb
from models.control.checks import find_desired
from models.control.limits import Limits
from models.control.reasons import Reason
from models.control.state import Intention, JobHistory, ObservedJob, Parallelism, Request
from models.policies.memory import dump, load

T = TypeVar("T")
Row = dict[str, Any]


def row_of(entry: LogEntry, lease_number: int, number: int, code_version: str, at_s: float | None = None) -> Row:
    """Return the row of an entry.

    ``number`` orders the rows of a job. It is written at ``at_s``, epoch seconds; None: when it was decided or
    answered.

    Raises:
        ValueError: the job is not ``cluster/job``, or a value cannot be written.
    """
    cluster, slash, job = entry.job.partition("/")
    if not slash:
        raise ValueError(f"{entry.job!r} is not cluster/job")
    case, action = entry.case, entry.action
    names = unique_names(entry.provenance.operators)
    if at_s is None:
        at_s = case.now_s if entry.answered_at_s is None else entry.answered_at_s
    return {
        "at": timestamp_of(at_s),
        "cluster": cluster,
        "job": job,
        "job_id": case.observed.job_id,
        "lease_number": lease_number,
        "entry": number,
        "verb": str(action.verb),
        "reason": str(action.reason),
        "detail": action.detail,
        "answer": entry.answer or None,
        "origin": _origin(case),
        "step_id": entry.step_id or None,
        "mode": str(effective_mode(case)),
        "is_dry_run": action.is_dry_run,
        **_changes(case, action, names),
        "wish_changed": entry.wish_changed or None,
        "decided_at_s": case.now_s,
        "observed": dump(case.observed),
        "desired": _dump(case.desired),
        "limits": dump(case.limits),
        "outcome": dump(case.outcome),
        "history_before": dump(case.history),
        "history": dump(entry.history),
        "request": _dump(action.request),
        "operators": dict(entry.provenance.operators),
        "plan_as_of": maybe_timestamp(entry.provenance.plan_as_of_s),
        "model_version": entry.provenance.model_version,
        "code_version": code_version,
        "date": date_of(at_s),
    }


def case_of(row: Mapping[str, Any]) -> Case:
    """Return what the decision of a row was made from."""
    return Case(
        now_s=row["decided_at_s"],
        desired=_load(Intention, row["desired"]),
        observed=load(ObservedJob, row["observed"]),
        history=load(JobHistory, row["history_before"]),
        limits=load(Limits, row["limits"]),
        outcome=load(OutcomeCheck, row["outcome"]),
    )


def action_of(row: Mapping[str, Any]) -> Action:
    """Return the decision of a row; ``reconcile(case_of(row))`` gives it again."""
    reason = _read_reason(row["reason"])
    return Action(Verb(row["verb"]), reason, row["detail"] or "", _load(Request, row["request"]), row["is_dry_run"])


def _read_reason(name: str) -> Reason:
    try:
        return Reason(name)
    except ValueError:  # another release wrote the row: what is known of the job counts all the same
        return Reason.UNKNOWN_REASON


def history_of(row: Mapping[str, Any]) -> JobHistory:
    """Return the history after the decision of a row."""
    return load(JobHistory, row["history"])


def entry_of(row: Mapping[str, Any]) -> LogEntry:
    """Return the entry that was written as a row, as Arrow's ``to_pylist`` gives it."""
    plan_as_of = row["plan_as_of"]
    return LogEntry(
        job=f"{row['cluster']}/{row['job']}",
        case=case_of(row),
        action=action_of(row),
        history=history_of(row),
        answer=row["answer"] or "",
        answered_at_s=row["at"].timestamp() if row["answer"] else None,
        provenance=Provenance(
            operators=dict(row["operators"] or ()),
            plan_as_of_s=None if plan_as_of is None else plan_as_of.timestamp(),
            model_version=row["model_version"],
        ),
        wish_changed=row["wish_changed"] or "",
    )


def unique_names(operators: Mapping[str, str]) -> dict[str, str]:
    """Return vertex id -> name; names that several vertices have end with the vertex id."""
    count = Counter(operators.values())
    return {vertex: name if count[name] == 1 else f"{name} ({vertex})" for vertex, name in operators.items()}


def _changes(case: Case, action: Action, names: Mapping[str, str]) -> Row:
    observed = case.observed
    before = observed.running or observed.requested or {}
    desired = find_desired(case)
    after = action.request.target if action.request else None if desired is None else desired.parallelism
    return {
        "parallelism_from": _by_name(before, names),
        "parallelism_to": None if after is None else _by_name(after, names),
        "slots_from": observed.slots_of(before),
        "slots_to": None if after is None else observed.slots_of(after),
    }


def _by_name(parallelism: Parallelism, names: Mapping[str, str]) -> dict[str, int]:
    return {names.get(vertex, vertex): count for vertex, count in parallelism.items()}


def _origin(case: Case) -> str | None:
    desired = find_desired(case)
    return None if desired is None else str(desired.origin)


def _dump(value: object | None) -> str | None:
    return None if value is None else dump(value)


def _load(kind: type[T], text: str | None) -> T | None:
    return None if text is None else load(kind, text)
