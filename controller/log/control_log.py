"""The log of decisions: what one entry holds, and which entries are worth a row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from include.utc import HOUR_S
from models.control.case import SENDS, Action, Case
from models.control.checks import find_desired
from models.control.reasons import Reason
from models.control.state import Intention, JobHistory, Origin

UNEVENTFUL = frozenset({Reason.IN_FLIGHT, Reason.AS_DESIRED})
"""Reasons of waiting that the entries before and after already tell."""
_REPEATED = {Reason.LEFT_AS_IS: 6 * HOUR_S, Reason.SLOTS_MISSING: HOUR_S}
"""Reason -> after so long it is news again; what has come between is not always an entry."""
NEEDS_HELP_S = 6 * HOUR_S
"""After so long it is news again what is done for a job that is late or down."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """What stands behind an intention; nothing is decided from it.

    Attributes:
        operators: vertex id -> name of the operator, where it is known.
        model_version: of the models that plan or evaluation used.
    """

    operators: Mapping[str, str] = field(default_factory=dict)
    plan_as_of_s: float | None = None
    model_version: str | None = None


NO_PROVENANCE = Provenance()


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of a job's log: a decision with everything that it was made from, and the history after it.

    A request has a second entry with the same decision: its answer.

    Attributes:
        job: ``cluster/job``.
        case: what the decision was made from; ``reconcile(case)`` gives ``action`` again.
        answer: what became of the request at once; empty in the entry that is recorded before it is sent.
        wish_changed: why something else is wanted than in the entry before; empty where it is not.
    """

    job: str
    case: Case
    action: Action
    history: JobHistory
    answer: str = ""
    answered_at_s: float | None = None
    provenance: Provenance = NO_PROVENANCE
    wish_changed: str = ""

    @property
    def sends(self) -> bool:
        """Whether a request leaves after this entry."""
        return self.action.verb in SENDS and not self.action.is_dry_run

    @property
    def step_id(self) -> str:
        """Id of the step that the decision is about; empty without one."""
        case = self.case
        about = self.action.request or case.history.in_flight
        if self.action.reason == Reason.WORSE_THAN_BEFORE:
            about = about or case.history.to_judge
        if about is not None:
            return about.step_id
        desired = find_desired(case)
        return "" if desired is None else desired.step_id


class DecisionKey(NamedTuple):
    """What makes a decision another one than the last: only then is it worth a row of its own."""

    verb: str
    reason: str
    is_dry_run: bool
    step_id: str
    target: tuple[tuple[str, int], ...]


def decision_of(entry: LogEntry) -> DecisionKey:
    """Return what an entry decides; an evaluation names a step anew."""
    desired, request = find_desired(entry.case), entry.action.request
    target = request.target if request else desired.parallelism if desired else {}
    is_planned = desired is None or desired.origin is not Origin.REACTIVE
    step_id = entry.step_id if is_planned else ""
    action = entry.action
    return DecisionKey(str(action.verb), str(action.reason), action.is_dry_run, step_id, tuple(sorted(target.items())))


def is_news(entry: LogEntry, last: LogEntry | None) -> bool:
    """Return whether an entry changes the history or decides otherwise than the last one of its job."""
    is_set = last is not None and entry.history.ahead_s != last.history.ahead_s  # a clock, or it was told first
    if is_set or entry.history != entry.case.history:
        return True
    needs_help = entry.history.needs_help
    if entry.action.reason in UNEVENTFUL and not needs_help:
        return False
    if last is None or decision_of(entry) != decision_of(last):
        return True
    repeated_s = min(_REPEATED.get(entry.action.reason, math.inf), NEEDS_HELP_S if needs_help else math.inf)
    return entry.case.now_s - last.case.now_s >= repeated_s


def explain_wish(entry: LogEntry, last: LogEntry | None) -> str:
    """Return why something else is wanted than in the last entry of the job; empty where it is not."""
    desired, before = find_desired(entry.case), None if last is None else find_desired(last.case)
    if last is None or before is None:
        return "" if desired is None else _name_wish(desired)
    if desired is None:
        is_over = entry.case.now_s > before.valid_until_s
        why = "its time is over" if is_over else entry.case.remark or "the last evaluation leaves the job as it is"
        return f"{_name_wish(before)}: no longer, {why}"
    if dict(desired.parallelism) == dict(before.parallelism):
        return ""
    if entry.case.desired == last.case.desired:
        return f"limits, free slots or the job itself allow something else of the same: {_name_wish(desired)}"
    return f"{_name_wish(desired)}; before: {_name_wish(before)}"


def _name_wish(desired: Intention) -> str:
    return f"{desired.origin}: {desired.reason}"


class EntryRefusedError(ValueError):
    """An entry cannot be written down; nothing was appended."""

    def __init__(self, job: str, why: str) -> None:
        super().__init__(why)
        self.job = job
