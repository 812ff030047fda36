"""One command at a time writes below a folder: a second one is told who does."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from cli.arguments import UsageError, require_writable
from cli.embedded import below
from include.place import is_object, local_beside, place
from include.settings import PROJECT, Settings, load_settings
from include.spark.submission import anchor_paths
from include.utc import format_utc

FILE = "command.lock"


class OutInUseError(UsageError):
    """Another command writes there; the message says which, and since when."""


@contextmanager
def hold_folder(out: Path, command: str, file: str = FILE) -> Iterator[None]:
    """Hold a folder, which is made if needed, for one command.

    The kernel lets go when the process ends, however it ends; the file stays and is of no importance. Whoever comes
    second is told the command.

    Raises:
        OutInUseError: another process holds it.
        UsageError: nothing can be written there.
    """
    require_writable(out)
    folder = require_writable(PROJECT / local_beside(str(out)))  # an object cannot be held
    handle = os.open(folder / file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutInUseError(
                f"argument --out: '{out}' is in use by {_holder(handle)}: wait for its end or pass another"
            ) from error
        holder = {
            "command": command,
            "pid": os.getpid(),
            "started": format_utc(datetime.now(UTC).replace(microsecond=0)),
        }
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(holder).encode(), 0)
        yield
    finally:
        os.close(handle)


@contextmanager
def hold_paths(out: Path | None, command: str, variables: Mapping[str, str] | None = None) -> Iterator[Settings]:
    """Hold where a command writes (None: where the settings say), and give the settings with which it does.

    Raises:
        OutInUseError: another process holds it.
        UsageError: nothing can be written there.
        SettingsError: the settings cannot be used.
    """
    if out is None:
        held = place(anchor_paths(load_settings()).paths.out)
    else:
        held = out
        if is_object(out):
            os.environ.update(below(out))
            load_settings()  # which say how its bucket is reached
    with hold_folder(held, command):
        os.environ.update({**({} if out is None else below(out)), **(variables or {})})
        yield anchor_paths(load_settings())


def _holder(handle: int) -> str:
    """Return who holds the lock, as the holder wrote it down."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        result = json.loads(os.pread(handle, 4096, 0))
        return f"`{result['command']}` (process {result['pid']}, since {result['started']})"
    return "another process"  # which has not written its name yet
