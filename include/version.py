"""The version of the code that made a row, recorded with every plan."""

from __future__ import annotations

import functools
import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from include.packaging import PACKAGES

VERSION = "0.1.0"


@functools.cache
def code_version() -> str:
    """Return ``<release>+<hash>``, hashed over the source files, the same in the zip that they were shipped in."""
    digest = hashlib.sha256()
    for name, source in _sources():
        digest.update(name.encode())
        digest.update(source)
    return f"{VERSION}+{digest.hexdigest()[:12]}"


def _sources() -> Iterator[tuple[str, bytes]]:
    archive = getattr(globals().get("__loader__"), "archive", None)
    if archive is None:
        root = Path(__file__).resolve().parent.parent
        for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
            yield path.relative_to(root).as_posix(), path.read_bytes()
    else:
        with zipfile.ZipFile(archive) as packed:
            for name in packed.namelist():
                if name.endswith(".py"):
                    yield name, packed.read(name)
