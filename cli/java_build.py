"""Compile Java sources of the project: find the JDK, and pack classes into a jar."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

from include.atomic_write import replace_atomically
from include.flink.faults import FlinkError

JAVA_RELEASE = "17"
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # jars carry no build time: the same sources give the same bytes


class JavaBuildError(FlinkError):
    """Java or a library is not there, or a source does not compile; the message names the remedy."""


def java_tool(name: str) -> str:
    """Return the path of ``java`` or ``javac``: from JAVA_HOME if set, else from PATH.

    Raises:
        JavaBuildError: it is in neither place.
    """
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / name).is_file():
        return str(Path(home) / "bin" / name)
    result = shutil.which(name)
    if result is None:
        raise JavaBuildError(f"`{name}` not found: install a JDK 17 or 21 and put it on PATH (or set JAVA_HOME)")
    return result


def pack_classes(classes: Path, jar: Path) -> None:
    """Write classes into a jar that carries no build time, whole or not at all."""
    with replace_atomically(jar) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _ZIP_EPOCH), "Manifest-Version: 1.0\r\n\r\n")
        for file in sorted(one for one in classes.rglob("*") if one.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(classes).as_posix(), _ZIP_EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())
