"""How the last run of each task ended, below the lake: the fleet's health shows what failed, or had nothing to do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from include.control.small_objects import ObjectFolder, object_name

FOLDER = "_stages"


@dataclass(frozen=True, slots=True)
class StageState:
    """How the last run of a task ended.

    Attributes:
        task: ``dag.task``.
        at_s: when, epoch seconds.
        error: why it failed; empty: it did not.
        is_scheduled: whether its DAG runs by a schedule; what a person starts fails before that person's eyes.
        empty: stages that ended well and had nothing to do, such as an ingestion without a line.
        lost: what its stages should have read and did without, a sentence each.
    """

    task: str
    at_s: float
    error: str = ""
    is_scheduled: bool = True
    empty: Sequence[str] = ()
    lost: Sequence[str] = ()


class StageStates:
    """The states below a lake; every method raises ``StoreUnreadableError``."""

    def __init__(self, lake: str) -> None:
        self._folder = ObjectFolder(lake.rstrip("/"), FOLDER)

    def read(self) -> list[StageState]:
        """Return the state of every task that ever ended, by name; an object that is none is passed over."""
        states = filter(None, map(_decode, self._folder.read_all().values()))
        return sorted(states, key=lambda one: one.task)

    def write(self, state: StageState) -> None:
        """Write a task's state, in the place of the one before."""
        self._folder.write(object_name(state.task), json.dumps(asdict(state)).encode())


def _decode(content: bytes) -> StageState | None:
    try:
        state = StageState(**json.loads(content))
    except (ValueError, TypeError, RecursionError):
        return None
    is_listed = isinstance(state.empty, list) and isinstance(state.lost, list | tuple)
    texts = [state.task, state.error, *state.empty, *state.lost] if is_listed else [None]
    usable = all(isinstance(one, str) for one in texts) and isinstance(state.at_s, int | float)
    return state if usable else None
