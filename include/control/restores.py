"""That a lake was restored from a backup, and from when: what was done between is in no table.

One small object below the lake, written before anything else of a restore. What was in force at the backup may have
been sent, taken back, or changed by a person since.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from include.control.small_objects import ObjectFolder, StoreUnreadableError
from include.object_store import local_folder

FOLDER = "_control/restored"
_NAME = "last.json"


@dataclass(frozen=True, slots=True)
class Restore:
    """The last restore of a lake.

    Attributes:
        at_s: when it was done, epoch seconds.
        backup_at_s: when its backup was made.
        leases: cluster -> number of the lease under which it was done; rows of a lower one are of the backup.
        is_whole: whether it has ended.
        by: who.
    """

    at_s: float
    backup_at_s: float
    leases: Mapping[str, int]
    is_whole: bool
    by: str = ""


class RestoreStore:
    """The object below a lake."""

    def __init__(self, lake: str) -> None:
        self._lake = lake.rstrip("/")
        self._folder = ObjectFolder(self._lake, FOLDER)

    def write(self, restore: Restore) -> None:
        """Write it, in the place of an earlier one; raises :class:`StoreUnreadableError`."""
        self._folder.write(_NAME, json.dumps(asdict(restore), ensure_ascii=False, allow_nan=False).encode())

    def read(self) -> Restore | None:
        """Return the last restore; None where the lake never was restored.

        Raises:
            StoreUnreadableError: nobody knows: the store does not answer, or the object is none that could be read.
        """
        folder = local_folder(self._lake)
        if folder is not None and not folder.is_dir():
            return None
        contents = self._folder.read_all()
        if not contents:
            return None
        try:
            made = json.loads(contents[_NAME])
            leases = {str(cluster): int(number) for cluster, number in made["leases"].items()}
            return Restore(
                float(made["at_s"]), float(made["backup_at_s"]), leases, made["is_whole"] is True, str(made["by"])
            )
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            reported = f"{self._lake}/{FOLDER}/{_NAME} cannot be read: {type(error).__name__}: {error}"
            raise StoreUnreadableError(reported) from error
