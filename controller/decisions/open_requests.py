"""What the requests of a cluster's jobs that have no end yet will take: their slots are not free for others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from controller.log.control_log import LogEntry
from models.control.case import Action, Case
from models.control.missing_slots import is_short_of_slots
from models.control.state import JobHistory, ObservedJob, Parallelism, Request, reserve_slots

MOST_CATCH_UP_S: Final = 300.0
"""So long a job is waited for after its rescale at most."""


@dataclass(slots=True)
class OpenRequests:
    """Slots that jobs of a cluster were asked for and do not run at yet, job by job.

    It begins with what the log holds, so that a controller which starts again counts what an earlier one has sent, and
    goes on with what is observed and decided in the tick.

    Attributes:
        slots: job -> slots that it is to get and does not have.
        jobs: of the cluster; 0 when nobody has counted.
        held: job -> slots that it holds, of those observed in the tick.
        rescaling: jobs that a request without an end is to stop -> slots that they hold: none that is down, far behind
            or short of slots.
        catch_up_until_s: job -> until when it catches up after its last rescale, epoch seconds.
    """

    jobs: int = 0
    slots: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    rescaling: dict[str, int] = field(default_factory=dict)
    catch_up_until_s: dict[str, float] = field(default_factory=dict)
    _total: int = 0

    def note_logged(self, entries: Mapping[str, LogEntry]) -> None:
        """Count the requests without an end of jobs that nobody has observed yet: as if they had got nothing."""
        for job, entry in entries.items():
            for request in _open_of(entry.history):
                self._note_request(job, request, entry.case.observed, request.running_before)

    def note_observed(self, job: str, observed: ObservedJob, history: JobHistory) -> None:
        """Count what a job was asked for, by whomever, as far as it does not run."""
        if observed.job_id is None:
            return
        self.held[job] = observed.slots
        self._total -= self.slots.pop(job, 0)
        self.rescaling.pop(job, None)
        if history.to_judge is not None and history.confirmed_at_s is not None:
            self.catch_up_until_s[job] = history.confirmed_at_s + min(history.to_judge.settle_s, MOST_CATCH_UP_S)
        self._lack(job, _missing(observed, observed.requested or {}, observed.running))
        for request in _open_of(history):
            self._note_request(job, request, observed, observed.running)

    def note_decision(self, job: str, case: Case, action: Action) -> None:
        """Count a request that is to be sent."""
        if action.request is not None:
            self._note_request(job, action.request, case.observed, case.observed.running)

    def reserve(self, job: str, case: Case) -> Case:
        """Return the case of a job in which the slots of the others are taken and their rescales counted."""
        observed = reserve_slots(case.observed, self._total - self.slots.get(job, 0))
        others = [slots for one, slots in self.rescaling.items() if one != job]
        busy = tuple(one for one in case.limits.neighbours if self._is_rescaled(one, case.now_s))
        counted = replace(
            observed,
            cluster_rescales=len(others),
            cluster_rescaled_slots=sum(others),
            cluster_slots_held=max(sum(self.held.values()), case.observed.cluster_slots_used or 0),
            cluster_jobs=self.jobs,
            neighbours_rescaled=busy,
        )
        return replace(case, observed=counted)

    def _is_rescaled(self, job: str, now_s: float) -> bool:
        return job in self.rescaling or now_s < self.catch_up_until_s.get(job, 0.0)

    def _note_request(self, job: str, request: Request, observed: ObservedJob, running: Mapping[str, int]) -> None:
        if request.running_before and not is_short_of_slots(request) and not observed.needs_no_turn:
            self.rescaling[job] = observed.slots_of(request.running_before)
        self._lack(job, _missing(observed, request.target, running))

    def _lack(self, job: str, slots: int) -> None:
        known = self.slots.get(job, 0)
        if slots > known:
            self.slots[job] = slots
            self._total += slots - known


def _missing(observed: ObservedJob, asked: Parallelism, running: Parallelism) -> int:
    """Return the slots that a job is asked for and does not have; vertices that have finished take none."""
    taken = {vertex: count for vertex, count in asked.items() if vertex in running or not running}
    return observed.slots_of(taken) - observed.slots_of(running)


def _open_of(history: JobHistory) -> Iterable[Request]:
    return [one for one in (history.in_flight,) if one is not None]
