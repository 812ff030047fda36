"""Whether a controller works on a lake: by what it writes there."""

from __future__ import annotations

from urllib.parse import quote

from obstore.exceptions import BaseError

from include.control.small_objects import StoreUnreadableError
from include.object_store import local_folder, open_store

LATELY_S = 3600.0
LEASES_FOLDER = "ops/leases"
_LOG_FOLDER = "ops/control_log/_delta_log"


def is_controlled(lake: str, cluster: str | None, now_s: float) -> bool:
    """Whether a controller of a cluster, or of any, has taken a lease or written its log lately.

    Raises:
        StoreUnreadableError: the lake is not there, or does not answer.
    """
    leases = LEASES_FOLDER if cluster is None else f"{LEASES_FOLDER}/cluster={quote(cluster, safe='')}"
    folder = local_folder(lake)
    try:
        if folder is not None and not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder}")
        store = open_store(lake)
        result = [one for place in (leases, _LOG_FOLDER) for batch in store.list(prefix=f"{place}/") for one in batch]
    except (BaseError, OSError, ValueError) as error:
        reported = str(error).partition("\n")[0] or type(error).__name__
        raise StoreUnreadableError(f"{lake}: {reported}") from error
    return any(now_s - one["last_modified"].timestamp() < LATELY_S for one in result)
