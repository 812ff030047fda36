"""Raw payload files handed in from elsewhere: checked by name, copied unread."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from include.atomic_write import write_bytes
from include.flink.poller import DeliveredFiles
from include.raw_files import LAYOUT

_LAYOUT = re.compile(r"cluster=([\w.-]+)/date=(\d{4}-\d{2}-\d{2})/hour=(\d{2})/[^/._][^/]*\.jsonl(\.gz)?")
_GZIP_MAGIC = b"\x1f\x8b"


class FileSource:
    """A folder in the layout of ``include/flink/raw_format.py`` (``cluster=/date=/hour=/*.jsonl[.gz]``).

    Files are copied byte for byte, so that a corrupt line reaches the quarantine as it is; only what ingestion could
    never find or open (wrong place or name, empty, not gzip) is refused here, by name. A README.md is passed over.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def deliver(self, raw_root: Path) -> DeliveredFiles:
        """Copy every accepted file to the same place below the raw root; a second call copies nothing."""
        written = retained = 0
        refused: dict[str, str] = {}
        for path in self._files():
            relative = path.relative_to(self._folder)
            reason = refusal(path, self._folder)
            target = raw_root / relative
            if reason is None and target.exists():
                if target.read_bytes() == path.read_bytes():
                    retained += 1
                    continue
                reason = "another file of this name is there already; rename this one"
            if reason is not None:
                refused[str(relative)] = reason
                continue
            write_bytes(target, path.read_bytes())
            written += 1
        return DeliveredFiles(written, retained, refused)

    def _files(self) -> list[Path]:
        return sorted(path for path in self._folder.rglob("*") if path.is_file() and path.name != "README.md")


def refusal(path: Path, folder: Path) -> str | None:
    """Return why a file cannot be taken, None when it can."""
    relative = path.relative_to(folder).as_posix()
    result = _LAYOUT.fullmatch(relative)
    if result is None:
        return f"not at {LAYOUT}"
    try:
        datetime.strptime(f"{result[2]} {result[3]}", "%Y-%m-%d %H")
    except ValueError:
        return f"date={result[2]}/hour={result[3]} is no hour of the calendar"
    with path.open("rb") as binary:
        start = binary.read(2)
    if not start:
        return "empty file"
    if path.name.endswith(".gz"):
        return None if start == _GZIP_MAGIC else "not compressed with gzip"
    return "compressed with gzip, and not named .gz" if start == _GZIP_MAGIC else None
