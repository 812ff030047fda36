"""Holds: what a person has stopped, for every controller, driver and worker at once.

Each is one small object below the lake.  What cannot be read as a hold is one for everything, so a file of any name and
content in that folder stops all, and so does a store that does not answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from include.control.small_objects import ObjectFolder, StoreUnreadableError, object_name
from include.settings.environment import HOLD_VARIABLE

EVERYTHING = "all"
FOLDER = "_control/holds"


@dataclass(frozen=True, slots=True)
class Hold:
    """Something that a person has stopped.

    Attributes:
        scope: ``all``, a cluster, or ``cluster/job``.
        reason: for others to read.
        by: who.
        since_s: epoch seconds.
        until_s: end; None: until it is released.
    """

    scope: str
    reason: str = ""
    by: str = ""
    since_s: float = 0.0
    until_s: float | None = None

    def covers(self, cluster: str, job: str) -> bool:
        """Whether a job is stopped by it."""
        return self.scope in {EVERYTHING, cluster, f"{cluster}/{job}"}

    def widened(self, clusters: Collection[str], is_known_job: Callable[[str], bool]) -> Hold:
        """Return the hold as it counts: one that names what nobody knows holds the cluster, or everything."""
        if self.scope in clusters or is_known_job(self.scope):
            return self
        cluster, slash, _ = self.scope.strip().partition("/")
        return replace(self, scope=cluster if slash and cluster in clusters else EVERYTHING)

    def is_over(self, now_s: float) -> bool:
        """Whether it has ended."""
        return self.until_s is not None and now_s >= self.until_s

    def describe(self) -> str:
        """Return what a person reads."""
        what = "everything is" if self.scope == EVERYTHING else f"{self.scope} is"
        by = f" by {self.by}" if self.by else ""
        return f"{what} on hold{by}{f': {self.reason}' if self.reason else ''}"


@dataclass(frozen=True, slots=True)
class UnreadableHold(Hold):
    """A hold on everything since something below the lake cannot be read, which no release ends.

    Attributes:
        remedy: what ends it.
    """

    remedy: str = ""


def hold_unread(what: str, error: StoreUnreadableError) -> UnreadableHold:
    """Return the hold on everything while a store does not answer."""
    remedy = "let paths.lake name the lake that the controller uses, and its store answer: tidewise doctor"
    return UnreadableHold(EVERYTHING, f"the {what} cannot be read ({error})", remedy=remedy)


class HoldStore:
    """The holds below a lake."""

    def __init__(self, lake: str) -> None:
        self._folder = ObjectFolder(lake.rstrip("/"), FOLDER)

    def write(self, hold: Hold, name: str = "") -> None:
        """Write a hold, in the place of an earlier one of its name or scope; raises :class:`StoreUnreadableError`."""
        text = json.dumps(asdict(hold), ensure_ascii=False, allow_nan=False)
        self._folder.write(name or object_name(hold.scope), text.encode())

    def release(self, name: str) -> None:
        """Delete the object of a hold; raises :class:`StoreUnreadableError`."""
        self._folder.delete(name)

    def read_named(self, now_s: float) -> dict[str, Hold]:
        """Return object's name -> hold, of those in force; raises :class:`StoreUnreadableError`."""
        result = {name: _decode(name, content) for name, content in self._folder.read_all().items()}
        return {name: hold for name, hold in result.items() if not hold.is_over(now_s)}

    def read(self, now_s: float) -> list[Hold]:
        """Return the holds in force; a store that cannot be read is a hold on everything."""
        try:
            return list(self.read_named(now_s).values())
        except StoreUnreadableError as error:
            return [hold_unread("holds", error)]


def _decode(name: str, content: bytes) -> Hold:
    try:
        hold = Hold(**json.loads(content))
        usable = isinstance(hold.scope, str) and hold.scope and isinstance(hold.until_s, float | int | None)
    except (ValueError, TypeError, RecursionError):
        usable = False
    return hold if usable else Hold(EVERYTHING, f"the file {name} in {FOLDER} is no hold that could be read")


def holds_of_variable(variables: Mapping[str, str], clusters: Sequence[str]) -> list[Hold]:
    """Return the holds that ``TIDEWISE_HOLD`` names: ``all``, clusters and ``cluster/job``, with commas between.

    A cluster that nobody knows is a slip, and stops everything: a kill switch must not miss. So does a job that nobody
    knows with its cluster (:meth:`Hold.widened`).
    """
    given = variables.get(HOLD_VARIABLE, "")
    result = []
    for scope in filter(None, (part.strip() for part in given.split(","))):
        cluster = scope.partition("/")[0]
        if scope == EVERYTHING or cluster in clusters:
            result.append(Hold(scope, f"{HOLD_VARIABLE} names it"))
        else:
            result.append(Hold(EVERYTHING, f"{HOLD_VARIABLE} names {scope!r}, and there is no cluster {cluster!r}"))
    return result
