"""A commit through delta-rs that is made once, also where the answer to its request is lost.

After a lost answer the client of the store asks once more, and is told that the version is there. delta-rs takes that
for another's commit, and commits the same files with the next version: where they were merged in between, every row is
in the table twice. Here a commit has an id and one try; what became of it is read from the log.
"""

from __future__ import annotations

import itertools
import uuid
from typing import Any

import deltalake
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

_ID = "tidewise.commit"
"""Name in ``commitInfo``."""


class CommitUnknownError(OSError):
    """Whether a commit was made cannot be read: who makes it again may make it twice."""


def commit_path(version: int) -> str:
    """Return where the log has a version, below the table."""
    return f"_delta_log/{version:020}.json"


def commit_once(delta: DeltaTable, store: ObjectStore, rows: pa.Table, **options: Any) -> int:
    """Write rows in one commit; returns its version. The table has to be read anew where that is not its version.

    Options are those of :func:`deltalake.write_deltalake`.

    Raises:
        CommitFailedError: another was faster; nothing was committed.
        CommitUnknownError: neither the commit nor the log was answered.
        DeltaError, OSError: nothing was committed.
    """
    own, first = uuid.uuid4().hex, delta.version() + 1
    once = CommitProperties(custom_metadata={_ID: own}, max_commit_retries=0)
    try:
        deltalake.write_deltalake(delta, rows, commit_properties=once, **options)
    except (DeltaError, OSError) as error:
        try:
            version = _find_commit(store, own, first)
        except BaseError as unread:
            raise CommitUnknownError(f"{delta.table_uri}: whether a commit was made ({error}) is not known") from unread
        if version is None:
            raise
        return version
    return delta.version()


def _find_commit(store: ObjectStore, own: str, first: int) -> int | None:
    """Return the version of the commit with an id, from a version on; None where it is not there."""
    for version in itertools.count(first):
        try:
            content = bytes(store.get(commit_path(version)).bytes())
        except FileNotFoundError:
            return None
        if own.encode() in content:
            return version
    return None
