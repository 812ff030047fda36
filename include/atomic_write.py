"""Files that are written whole or not at all: a temporary file in the same folder takes the place of the old one.

Standard library only: the set-up uses it before anything is installed. Nothing is flushed to the disk by force: a
killed process leaves the old file or the new one, a machine that loses power may leave neither.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from include.place import is_object


@contextmanager
def temporary_beside(target: Path) -> Iterator[Path]:
    """Yield the path of a temporary file in the target's folder, which is made if needed; it is removed at the end.

    For an object of a bucket the folder is one of this machine.

    Its name starts with a dot and is used by no other thread or process at the same time.
    """
    if is_object(target):
        with tempfile.TemporaryDirectory(prefix="tidewise-") as folder:
            yield Path(folder) / target.name
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replace_atomically(target: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; the file takes the place of the target when the block ends without an error.

    Raises:
        FileNotFoundError: the block wrote nothing.
    """
    with temporary_beside(target) as temporary:
        yield temporary
        if is_object(target):  # which is there as a whole or not at all
            target.write_bytes(temporary.read_bytes())
        else:
            temporary.replace(target)


def write_bytes(target: Path, content: bytes) -> None:
    """Write a file."""
    with replace_atomically(target) as temporary:
        temporary.write_bytes(content)


def write_text(target: Path, text: str) -> None:
    """Write a text file in UTF-8."""
    write_bytes(target, text.encode())


def write_json(target: Path, content: object) -> None:
    """Write a JSON file that people can read: indented, with letters as they are."""
    write_text(target, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
