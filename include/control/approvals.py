"""What persons have said to steps that wait for them: one small object per answer below the lake.

Whoever can write that folder can answer in anybody's name.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import lru_cache

from include.control.small_objects import MOST_OBJECTS, ObjectFolder, StoreUnreadableError, object_name

FOLDER = "_control/approvals"
ASKED_FOLDER = "_control/asked"  # what Airflow shows to persons already
NOBODY = "nobody in time"


@dataclass(frozen=True, slots=True)
class WaitingStep:
    """A step that waits for a person's yes.

    Attributes:
        cluster, job: whose.
        step_id: of the step.
        at: when the controller last said that it waits.
        detail: why it is wanted.
        parallelism_from, parallelism_to: by operator, else by vertex id.
    """

    cluster: str
    job: str
    step_id: str
    at: datetime
    detail: str
    parallelism_from: Mapping[str, int]
    parallelism_to: Mapping[str, int]

    def describe(self) -> str:
        """Return the change as a person reads it: the operators that change, then why."""
        changes = [
            f"{name} {self.parallelism_from.get(name, '?')} -> {count}"
            for name, count in sorted(self.parallelism_to.items())
            if self.parallelism_from.get(name) != count
        ]
        return f"{self.cluster}/{self.job}, step {self.step_id}: {', '.join(changes) or 'no change'}. {self.detail}"


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's yes or no.

    Attributes:
        cluster, job, step_id: to what.
        parallelism_from, parallelism_to: the change that was shown; a yes is to nothing else.
        is_approved: yes or no.
        by: who; :data:`NOBODY` where nobody answered in time.
        at_s, until_s: epoch seconds; from the answer until it no longer counts.
    """

    cluster: str
    job: str
    step_id: str
    parallelism_from: Mapping[str, int] = field(default_factory=dict)
    parallelism_to: Mapping[str, int] = field(default_factory=dict)
    is_approved: bool = False
    by: str = ""
    at_s: float = 0.0
    until_s: float = 0.0

    @property
    def approval_id(self) -> str:
        """What tells this answer from every other, of the same person to the same step as well."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    def is_over(self, now_s: float) -> bool:
        """Whether it has ended; a no whose end is no time never does."""
        return now_s >= self.until_s or (self.is_approved and math.isnan(self.until_s))


def answer_step(step: WaitingStep, is_approved: bool, by: str, at_s: float, until_s: float) -> Approval:
    """Return a person's answer to what they were shown."""
    before, after = dict(step.parallelism_from), dict(step.parallelism_to)
    return Approval(step.cluster, step.job, step.step_id, before, after, is_approved, by, at_s, until_s)


class ApprovalStore:
    """The answers below a lake."""

    def __init__(self, lake: str, folder: str = FOLDER) -> None:
        self._folder = ObjectFolder(lake.rstrip("/"), folder)

    def write(self, approval: Approval) -> None:
        """Write an answer, in the place of an earlier one of the same person that says the same of the step.

        A no stays beside a yes, whoever says it: it ends with its time, or is lifted (:meth:`lift`).

        Raises:
            StoreUnreadableError: it was not written.
        """
        text = json.dumps(asdict(approval), ensure_ascii=False, allow_nan=False)
        about = [approval.cluster, approval.job, approval.step_id, approval.by, approval.is_approved]
        self._folder.write(object_name(json.dumps(about)), text.encode())

    def read(self, now_s: float) -> list[Approval]:
        """Return the answers that count; where one cannot be read, no yes does: it may have been a no."""
        try:
            result = self._folder.read_all()
        except StoreUnreadableError:
            return []
        answers = [_decode(content) for content in result.values()]
        are_all_read = None not in answers
        return [
            one
            for one in answers
            if one is not None and not one.is_over(now_s) and (are_all_read or not one.is_approved)
        ]

    def find_unreadable(self) -> list[str]:
        """Return the names of objects that are no answer; raises :class:`StoreUnreadableError`."""
        return sorted(name for name, content in self._folder.read_all().items() if _decode(content) is None)

    def lift(self, denials: Iterable[Approval]) -> None:
        """Delete answers; raises :class:`StoreUnreadableError`."""
        wanted = {one.approval_id for one in denials}
        for name, content in self._folder.read_all().items():
            answer = _decode(content)
            if answer is not None and answer.approval_id in wanted:
                self._folder.delete(name)

    def delete_expired(self, now_s: float) -> None:
        """Delete the answers that no longer count; raises :class:`StoreUnreadableError`."""
        self._folder.delete_where(lambda content: (one := _decode(content)) is not None and one.is_over(now_s))


@lru_cache(maxsize=MOST_OBJECTS)  # the same objects are looked at before each request
def _decode(content: bytes) -> Approval | None:
    try:
        result = Approval(**json.loads(content))
        texts = all(isinstance(one, str) for one in (result.cluster, result.job, result.step_id, result.by))
        shown = (*result.parallelism_from.values(), *result.parallelism_to.values())
        counts = all(type(one) is int for one in shown)
        result = replace(result, at_s=float(result.at_s), until_s=float(result.until_s))
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return None
    return result if texts and counts and isinstance(result.is_approved, bool) else None
