"""Blocks of targets that persons have lifted: one small object per block below the lake."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from include.control.small_objects import ObjectFolder, StoreUnreadableError, object_name

FOLDER = "_control/lifted"


@dataclass(frozen=True, slots=True)
class LiftedBlock:
    """A block that a person has lifted.

    Attributes:
        cluster, job: whose target was blocked.
        block_id: of the block; a later one of the same target has another.
        by: who.
        at_s: epoch seconds.
    """

    cluster: str
    job: str
    block_id: str
    by: str = ""
    at_s: float = 0.0


class LiftedBlockStore:
    """The lifted blocks below a lake."""

    def __init__(self, lake: str) -> None:
        self._folder = ObjectFolder(lake.rstrip("/"), FOLDER)

    def write(self, lifted: LiftedBlock) -> None:
        """Write down that a block is lifted; raises :class:`StoreUnreadableError`."""
        text = json.dumps(asdict(lifted), ensure_ascii=False, allow_nan=False)
        name = object_name(json.dumps([lifted.cluster, lifted.job, lifted.block_id]))
        self._folder.write(name, text.encode())

    def read(self) -> list[LiftedBlock]:
        """Return the lifted blocks; what cannot be read lifts nothing."""
        try:
            result = self._folder.read_all()
        except StoreUnreadableError:
            return []
        return [one for one in map(_decode, result.values()) if one is not None]

    def delete_where(self, is_ended: Callable[[LiftedBlock], bool]) -> None:
        """Delete lifted blocks; raises :class:`StoreUnreadableError`."""
        self._folder.delete_where(lambda content: (one := _decode(content)) is not None and is_ended(one))


def _decode(content: bytes) -> LiftedBlock | None:
    try:
        result = LiftedBlock(**json.loads(content))
    except (ValueError, TypeError, RecursionError):
        return None
    return (
        result if all(isinstance(one, str) and one for one in (result.cluster, result.job, result.block_id)) else None
    )
