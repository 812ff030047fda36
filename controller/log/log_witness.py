"""How far a cluster's log had come, kept beside the lake: a lake that was restored from before shows by it."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping

from include.atomic_write import replace_atomically
from include.place import place

log = logging.getLogger(__name__)


class LogWitness:
    """A small file with the number of each job's last entry; without one nothing is known, as on another machine.

    Args:
        out: folder of what is written besides the lake.
        lake: folder or URI of the lake whose log it is about.
        cluster: of the log.
    """

    def __init__(self, out: str, lake: str, cluster: str) -> None:
        name = hashlib.sha256(json.dumps([lake, cluster]).encode()).hexdigest()[:16]
        self._path = place(out) / "controller" / f"log-{name}.json"

    def read(self) -> dict[str, int]:
        """Return ``cluster/job`` -> number of the last entry that was written; empty where nobody knows."""
        try:
            result = json.loads(self._path.read_text(encoding="utf-8"))
            return {str(job): int(number) for job, number in result.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            log.warning("%s cannot be read: %s", self._path, error)
            return {}

    def write(self, numbers: Mapping[str, int]) -> None:
        """Keep the numbers; where that is impossible the next controller knows less, and this one goes on."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with replace_atomically(self._path) as temporary:
                temporary.write_text(json.dumps(dict(numbers)), encoding="utf-8")
        except OSError as error:
            log.warning("%s is not written: %s", self._path, error)
