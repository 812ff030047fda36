"""What is done to the cluster while it is recorded: the script of a day, or many recoveries one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lab.local_flink.load import AGGREGATE, ENRICH, SOURCE


class Action(StrEnum):
    """What is done to the cluster itself; the values are the words of the recording's README."""

    KILL = "TaskManager killed (SIGKILL)"
    START = "TaskManager started again"
    UPGRADE = "job cancelled and submitted again"


@dataclass(frozen=True, slots=True)
class Event:
    """What happens at a share of the recording's length: a rescale, or an action."""

    share: float
    rescale: dict[str, int] | None = None
    action: Action | None = None

    @property
    def text(self) -> str:
        """The event in words."""
        if self.rescale is not None:
            return "PUT resource-requirements: " + ", ".join(f"{name} -> {p}" for name, p in self.rescale.items())
        return str(self.action)


# The day's load rises until the middle and falls again. Scaling up comes late, so that lag builds up first; the death
# falls on the way down from the peak, so that the job catches up under load.
DAY_SCRIPT = (
    Event(0.29, rescale={ENRICH: 2}),
    Event(0.38, rescale={ENRICH: 3, AGGREGATE: 2}),
    Event(0.47, rescale={SOURCE: 2}),
    Event(0.56, action=Action.KILL),
    Event(0.57, action=Action.START),
    Event(0.68, rescale={SOURCE: 1, ENRICH: 2}),
    Event(0.78, rescale={ENRICH: 1, AGGREGATE: 1}),
)

_FIRST, _LAST = 0.05, 0.97  # shares of the length: something is measured before the first stop and after the last
_START_AFTER = 0.2  # of the time between two events, after which a killed TaskManager comes back
_KINDS = ("rescale", "rescale", "kill", "rescale", "kill", "rescale", "rescale", "kill", "rescale", "upgrade")


def recovery_script(count: int) -> tuple[Event, ...]:
    """Return a script of ``count`` recoveries at even distances, with parallelisms that stay above the day's load."""
    step = (_LAST - _FIRST) / count
    events: list[Event] = []
    for place in range(count):
        at, kind = _FIRST + place * step, _KINDS[place % len(_KINDS)]
        if kind == "rescale":
            events.append(Event(at, rescale={ENRICH: 3 + place % 3, AGGREGATE: 1 + place % 2}))
        elif kind == "kill":
            events += [Event(at, action=Action.KILL), Event(at + _START_AFTER * step, action=Action.START)]
        else:
            events.append(Event(at, action=Action.UPGRADE))
    return tuple(events)
