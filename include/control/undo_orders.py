"""Undos: what persons want taken back, one small object per job below the lake; each stands beside its hold.

The hold is one as any other. An order counts while its own hold is in force and nothing else holds the job.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field

from include.control.holds import Hold, HoldStore
from include.control.small_objects import ObjectFolder, StoreUnreadableError, object_name

FOLDER = "_control/undos"


@dataclass(frozen=True, slots=True)
class UndoOrder:
    """A person's order to take the last rescale of a job back.

    Attributes:
        cluster, job: whose.
        job_id: of Flink's job that the rescale was sent for.
        step_id: of the rescale.
        undone: vertex id -> upper bound that the rescale asked for.
        target: vertex id -> upper bound to go back to.
        by: who.
        reason: why, for others to read.
        at_s, until_s: epoch seconds; from the order to the end of its hold.
    """

    cluster: str
    job: str
    job_id: str
    step_id: str
    undone: Mapping[str, int] = field(default_factory=dict)
    target: Mapping[str, int] = field(default_factory=dict)
    by: str = ""
    reason: str = ""
    at_s: float = 0.0
    until_s: float = 0.0

    @property
    def hold(self) -> Hold:
        """The hold that goes with it."""
        why = f"undo of step {self.step_id}"
        scope = f"{self.cluster}/{self.job}"
        return Hold(scope, f"{why}: {self.reason}" if self.reason else why, self.by, self.at_s, self.until_s)


class UndoStore:
    """The orders below a lake."""

    def __init__(self, lake: str) -> None:
        self._folder = ObjectFolder(lake.rstrip("/"), FOLDER)
        self._holds = HoldStore(lake)

    def write(self, order: UndoOrder) -> None:
        """Write the hold, then the order, in the place of earlier ones; raises :class:`StoreUnreadableError`."""
        scope = f"{order.cluster}/{order.job}"
        self._holds.write(order.hold, object_name(f"undo {scope}"))
        text = json.dumps(asdict(order), ensure_ascii=False, allow_nan=False)
        self._folder.write(object_name(scope), text.encode())

    def read(self) -> list[UndoOrder]:
        """Return the orders; what cannot be read undoes nothing."""
        try:
            result = self._folder.read_all()
        except StoreUnreadableError:
            return []
        return [one for one in map(_decode, result.values()) if one is not None]


def find_order(orders: Collection[UndoOrder], cluster: str, job: str, holds: Collection[Hold]) -> UndoOrder | None:
    """Return the order that counts for a job: whose hold is the only one of those that hold it."""
    for order in orders:
        if (order.cluster, order.job) == (cluster, job) and list(holds) == [order.hold]:
            return order
    return None


def _decode(content: bytes) -> UndoOrder | None:
    try:
        result = UndoOrder(**json.loads(content))
        texts = (result.cluster, result.job, result.job_id, result.step_id)
        counts = (*result.undone.values(), *result.target.values())
        is_usable = (
            all(isinstance(one, str) and one for one in texts)
            and isinstance(result.by, str)
            and isinstance(result.reason, str)
            and all(type(one) is int and one >= 1 for one in counts)
            and set(result.undone) == set(result.target) != set()
            and float(result.at_s) < float(result.until_s)
        )
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return None
    return result if is_usable else None
