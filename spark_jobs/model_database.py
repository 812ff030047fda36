"""MLflow's own SQLite file, made whole or not at all.

MLflow builds its schema in dozens of migrations, on first use and in place; SQLite commits each statement of them by
itself.  A process killed among them would leave a file that every later start trips over.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlflow import MlflowClient

_SQLITE = "sqlite:///"


def ensure_database(tracking_uri: str) -> None:
    """Make the file behind a SQLite URI with its schema, unless it is there; any other URI is left to its server."""
    if not tracking_uri.startswith(_SQLITE):
        return
    path = Path(tracking_uri.removeprefix(_SQLITE))
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone_in(path.parent):
        if path.exists():
            return
        temporary = path.with_name(f".{path.name}.tmp")
        for leftover in path.parent.glob(f"{temporary.name}*"):  # SQLite keeps a journal beside it
            leftover.unlink()
        MlflowClient(f"{_SQLITE}{temporary}").search_experiments(max_results=1)
        temporary.rename(path)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes that do the same waiting; the kernel lets go when this one is killed."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
