"""The version of the code that made a row, recorded with every plan."""

from __future__ import annotations

import functools
import zipfile
from collections.abc import Iterator
from pathlib import Path

from include.spark.code_zip import content_hash, packed_files

VERSION = "0.1.0"


@functools.cache
def code_version() -> str:
    """Return ``<release>+<hash>``, hashed over the files of the code, the same in the zip that they were shipped in."""
    archive = getattr(globals().get("__loader__"), "archive", None)
    files = packed_files(Path(__file__).resolve().parent.parent) if archive is None else _read_archive(archive)
    return f"{VERSION}+{content_hash(files)}"


def _read_archive(archive: str) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(archive) as packed:
        for name in packed.namelist():
            if not name.endswith(".pyc"):
                yield name, packed.read(name)
