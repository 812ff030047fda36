"""Raw files: whole days go when the settings say how long they are kept; else none does."""

from __future__ import annotations

import re
import shutil
from datetime import date, datetime, timedelta
from pathlib import Path

_DAY = re.compile(r"date=(\d{4}-\d{2}-\d{2})")


def old_raw_days(raw: Path, days: int | None, now: datetime) -> list[Path]:
    """Return the folders ``cluster=*/date=*`` of days that are older than they are kept, the oldest first.

    Folders of other names, and links, are left alone.
    """
    if days is None or not raw.is_dir():
        return []
    before = (now - timedelta(days=days)).date()
    found = []
    for folder in raw.glob("cluster=*/date=*"):
        name = _DAY.fullmatch(folder.name)
        if name is None or folder.is_symlink() or not folder.is_dir():
            continue
        try:
            day = date.fromisoformat(name[1])
        except ValueError:
            continue
        if day < before:
            found.append((day, folder))
    return [folder for _, folder in sorted(found)]


def remove_raw_days(folders: list[Path]) -> None:
    """Remove folders; one that was removed half-way before is removed the rest of the way."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=False)
