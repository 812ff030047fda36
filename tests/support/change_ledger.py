"""Who asked a job for what, as the model of Flink and its persons know: no controller is asked what it believes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

CONTROLLER, PERSON, DEPLOYMENT, RESOURCE = "controller", "person", "deployment", "resource"
LATE_S = 960.0  # after so long a request that nobody has seen is not on its way any more
DEADLINE_S = 180.0  # until then a request that has not ended is followed


@dataclass(frozen=True)
class Asked:
    """What a job is asked for, as anybody can read it."""

    upper: Mapping[str, int]
    lower: Mapping[str, int]
    resource: Mapping[str, int] | None = None  # of a deployment that is to bring the job there


@dataclass
class Change:
    """A change of what a job is asked for.

    Attributes:
        by: controller, person, deployment (a job that was submitted anew) or resource (one that its resource explains).
        told_before: what a controller that lived on had been told last.
        is_explained: whether a request of which nobody knows that it had arrived before asks for just that.
        was_told: whether such a controller was told of it.
    """

    at_s: float
    by: str
    asked: Asked
    told_before: Asked | None
    is_explained: bool
    was_told: bool = False

    @property
    def is_visible(self) -> bool:
        """Whether anything is different from what was told; lower bounds end with the job that had them."""
        before, asked = self.told_before, self.asked
        if before is None:
            return False
        is_lower_new = asked.lower != before.lower
        if self.by == DEPLOYMENT:
            is_lower_new = not asked.lower.items() <= before.lower.items()
        return before.upper != asked.upper or is_lower_new


@dataclass
class Sent:
    """A request that a controller has recorded, and may have sent.

    Attributes:
        has_left: whether it has.
        has_ended: whether a controller that lived on was told of its end.
        was_seen: whether such a controller was told that it had arrived.
        late_until_s: until then nobody can tell it from the same numbers of somebody else.
    """

    at_s: float
    target: Mapping[str, int]
    late_until_s: float
    has_left: bool = False
    has_ended: bool = False
    was_seen: bool = False


@dataclass
class ChangeLedger:
    """Changes, and requests that may have caused them."""

    changes: list[Change] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    told: Asked | None = None
    _shown: list[tuple[Asked, Change | None, Mapping[str, int]]] = field(default_factory=list)
    _answered: list[Sent] = field(default_factory=list)

    @property
    def now(self) -> Asked | None:
        return self.changes[-1].asked if self.changes else None

    def note(self, now_s: float, by: str, asked: Asked) -> None:
        """Note what a job is asked for now, if it is something else than before."""
        last = self.now
        if last is None or (last.upper, last.lower) != (asked.upper, asked.lower):
            self.changes.append(Change(now_s, by, asked, self.told, self._explain(now_s, asked)))

    def deploy(self) -> None:
        """Note that requests sent until now go to a job that is no more."""
        self.sent.clear()
        self._answered.clear()

    # what controllers send and are told

    def record(self, now_s: float, target: Mapping[str, int]) -> None:
        self.sent.append(Sent(now_s, dict(target), now_s + LATE_S))

    def leave(self, now_s: float) -> Sent:
        sent = self.sent[-1]
        sent.at_s, sent.has_left = now_s, True
        return sent

    def withdraw(self) -> None:
        """Note that the request which was recorded last is not sent: its controller says so."""
        if self.sent and not self.sent[-1].has_left:
            self.sent.pop()

    def show(self, asked: Asked, running: Mapping[str, int]) -> None:
        """Note what a controller is told; it counts once the controller has lived on (:meth:`keep`)."""
        self._shown.append((asked, self.changes[-1] if self.changes else None, dict(running)))

    def answer(self, sent: Sent, *, is_refused: bool) -> None:
        """Note a reply to a request."""
        sent.has_ended = is_refused
        if not is_refused:
            self._answered.append(sent)

    def keep(self) -> None:
        """What was told has reached a controller that lived on."""
        for asked, change, running in self._shown:
            self.told = asked
            if change is not None:
                change.was_told = True
            for sent in self.sent:
                is_there = dict(sent.target) == dict(asked.upper)
                sent.was_seen |= sent.has_left and is_there
                is_done = sent.has_left and is_there and all(sent.target.get(one) == n for one, n in running.items())
                is_replaced = sent.was_seen and not is_there
                sent.has_ended |= (is_done and bool(running)) or is_replaced
                is_later = change is not None and change.at_s >= sent.at_s and change.is_visible
                sent.has_ended |= change is not None and is_later and change.by in {PERSON, DEPLOYMENT}
        for sent in self._answered:
            sent.was_seen = True
            if self.told is not None:
                self.told = replace(self.told, upper=dict(sent.target))
        self.forget()

    def forget(self) -> None:
        self._shown.clear()
        self._answered.clear()

    def set_clock_back(self, now_s: float) -> None:
        """Note that a controller waits for longer than it thinks."""
        for sent in self.sent:
            sent.late_until_s = now_s + LATE_S

    # what must not be

    def in_flight(self, now_s: float) -> list[Sent]:
        """Return the requests that have left, have not ended as far as anybody was told, and may still be followed."""
        return [one for one in self.sent if one.has_left and not one.has_ended and now_s - one.at_s < DEADLINE_S]

    def foreign(self, now_s: float, hold_s: float) -> Iterator[Change]:
        """Yield changes that somebody else made within a time, and that can be told from what a controller sent."""
        for change in self.changes:
            is_recent = now_s - change.at_s < hold_s and (change.was_told or change is self.changes[-1])
            if change.by in {PERSON, DEPLOYMENT} and is_recent and change.is_visible and not change.is_explained:
                yield change

    def is_own(self) -> bool:
        """Whether what a job is asked for comes from a controller, as far as anybody can tell."""
        last = self.changes[-1]
        return last.by == CONTROLLER or last.is_explained

    def _explain(self, now_s: float, asked: Asked) -> bool:
        """Whether a request that nobody has seen to arrive may be what brings a job to ``asked``."""
        if self.told is not None and self.told.lower != asked.lower:
            return False
        return any(
            dict(one.target) == dict(asked.upper)
            and now_s < one.late_until_s
            and not one.was_seen
            and not one.has_ended
            for one in self.sent
        )
