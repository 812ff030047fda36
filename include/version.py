"""The version of the code that made a row, recorded with every plan."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

VERSION = "0.1.0"


@functools.cache
def code_version() -> str:
    """Return ``<release>+<hash>``, hashed over the source files or over the zip they were shipped in."""
    loader = globals().get("__loader__")
    archive = getattr(loader, "archive", None)
    digest = hashlib.sha256()
    if archive is not None:
        digest.update(Path(archive).read_bytes())
    else:
        root = Path(__file__).resolve().parent.parent
        for package in ("include", "models", "spark_jobs"):
            for source in sorted((root / package).rglob("*.py")):
                digest.update(source.relative_to(root).as_posix().encode())
                digest.update(source.read_bytes())
    return f"{VERSION}+{digest.hexdigest()[:12]}"
