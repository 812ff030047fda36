"""How far a cluster's log had come, kept beside it: a log that was restored from before shows by it."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from urllib.parse import quote

from obstore.exceptions import BaseError

from include.control.controlled_lake import LEASES_FOLDER
from include.object_store import open_store

log = logging.getLogger(__name__)


class LogWitness:
    """The number of each job's last entry, in two places; where neither has it nothing is known.

    One is beside the leases, where any machine finds it when the log alone was taken back. The other is outside of the
    lake, where this machine finds it when the whole lake was.
    """

    def __init__(self, out: str, lake: str, cluster: str) -> None:
        name = hashlib.sha256(json.dumps([lake, cluster]).encode()).hexdigest()[:16]
        self._places = (
            (lake, f"{LEASES_FOLDER}/log-{quote(cluster, safe='')}.json"),
            (out, f"controller/log-{name}.json"),
        )

    def read(self) -> dict[str, int]:
        """Return ``cluster/job`` -> highest number of an entry that was written; empty where nobody knows."""
        result: dict[str, int] = {}
        for root, path in self._places:
            for job, number in self._read(root, path).items():
                result[job] = max(number, result.get(job, 0))
        return result

    def _read(self, root: str, path: str) -> dict[str, int]:
        try:
            numbers = json.loads(bytes(open_store(root).get(path).bytes()))
            return {str(job): int(number) for job, number in numbers.items()}
        except FileNotFoundError:
            return {}
        except (BaseError, OSError, ValueError, AttributeError, TypeError) as error:
            log.warning("%s/%s cannot be read: %s", root, path, error)
            return {}

    def write(self, numbers: Mapping[str, int]) -> None:
        """Keep the numbers; where that is impossible the next controller knows less, and this one goes on."""
        content = json.dumps(dict(numbers)).encode()
        for root, path in self._places:
            try:
                open_store(root).put(path, content)
            except (BaseError, OSError, ValueError) as error:
                log.warning("%s/%s is not written: %s", root, path, error)
