"""When the controller of each cluster ticked last: its lease is renewed at every tick."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import unquote

from obstore.exceptions import BaseError

from include.control.controlled_lake import LEASES_FOLDER
from include.object_store import local_folder, open_store


@dataclass(frozen=True, slots=True)
class LeaseFact:
    """The newest term of a cluster's lease.

    Attributes:
        owner: who has it; empty where it was given back.
        renewed_at_s: when it was taken or given back, epoch seconds.
    """

    owner: str
    renewed_at_s: float


def read_leases(lake: str) -> dict[str, LeaseFact]:
    """Return cluster -> its lease; a lake that does not answer has none that anybody knows of."""
    folder = local_folder(lake)
    if folder is not None and not (folder / LEASES_FOLDER).is_dir():
        return {}
    newest: dict[str, dict[str, object]] = {}
    try:
        store = open_store(lake)
        for one in (each for batch in store.list(prefix=f"{LEASES_FOLDER}/") for each in batch):
            part = one["path"].removeprefix(f"{LEASES_FOLDER}/").partition("/")[0]
            if not part.startswith("cluster="):  # what witnesses that there was a log
                continue
            cluster = unquote(part.removeprefix("cluster="))
            if cluster not in newest or one["path"] > newest[cluster]["path"]:
                newest[cluster] = dict(one)
        return {
            cluster: _lease_of(bytes(store.get(str(one["path"])).bytes()), one["last_modified"].timestamp())  # type: ignore[attr-defined]
            for cluster, one in newest.items()
        }
    except (BaseError, OSError, ValueError):  # cleaned up meanwhile, or not to be reached
        return {}


def _lease_of(content: bytes, written_at_s: float) -> LeaseFact:
    try:
        term = json.loads(content)
        until_s = float(term["until_s"])
        if until_s > 0:
            return LeaseFact(str(term["owner"]), until_s - float(term.get("length_s", 180.0)))
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return LeaseFact("", written_at_s)
