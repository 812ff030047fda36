"""Raw files: whole days go when the settings say how long they are kept, and the lake knows what was in them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from include.missed_hours import missed_files
from include.place import is_object, remove_all
from include.raw_files import LocalFiles, ObjectFiles, walk
from include.utc import HOUR

_DAY = re.compile(r"date=(\d{4}-\d{2}-\d{2})")
ReadIngested = Callable[[date], Mapping[str, datetime]]
"""Day -> name of each file of it that was ingested -> when that was written."""


@dataclass(slots=True)
class ExpiredDays:
    """Folders of days that are older than they are kept.

    Attributes:
        old: that go, the oldest first.
        kept: that stay nevertheless, and why.
    """

    old: list[Path] = field(default_factory=list)
    kept: dict[Path, str] = field(default_factory=dict)


def find_old_days(raw: Path, days: int | None, now: datetime, read_ingested: ReadIngested) -> ExpiredDays:
    """Return the folders ``cluster=*/date=*`` of days that are older than they are kept; none where all are.

    Folders of other names are left alone, and so is what lies behind a link. A day with files that were not ingested as
    they are stays: nothing else has what is in them.
    """
    result = ExpiredDays()
    if days is None or not raw.is_dir():
        return result
    before = (now - timedelta(days=days)).date()
    for day, folder in sorted(_list_days(raw)):
        if day >= before:
            continue
        why = _why_kept(raw, folder, day, read_ingested)
        if why:
            result.kept[folder] = why
        else:
            result.old.append(folder)
    return result


def _list_days(raw: Path) -> list[tuple[date, Path]]:
    clusters = [one for one in raw.glob("cluster=*") if not one.is_symlink() and one.is_dir()]
    result = []
    for folder in (folder for cluster in clusters for folder in cluster.glob("date=*")):
        name = _DAY.fullmatch(folder.name)
        if name is None or folder.is_symlink() or not folder.is_dir():
            continue
        try:
            result.append((date.fromisoformat(name[1]), folder))
        except ValueError:
            continue
    return result


def _why_kept(raw: Path, folder: Path, day: date, read_ingested: ReadIngested) -> str:
    links = [path.name for path in folder.rglob("*") if path.is_symlink()]
    if links:
        return f"{links[0]} is a link"
    start = datetime.combine(day, time(), UTC)
    files = walk(
        ObjectFiles(str(raw)) if is_object(raw) else LocalFiles(str(raw)),
        [start + number * HOUR for number in range(24)],
    )
    place = f"{folder.relative_to(raw)}/"
    own = [file for file in files if file.name.startswith(place)]
    unknown = missed_files(own, read_ingested(day))
    if not unknown:
        return ""
    names = sorted(file.name for file in unknown)
    return f"{len(names)} files were not ingested as they are, {names[0]} for one"


def remove_raw_days(folders: list[Path]) -> None:
    """Remove folders; one that was removed half-way before is removed the rest of the way."""
    for folder in folders:
        if is_object(folder):
            remove_all([folder])
        else:
            shutil.rmtree(folder, ignore_errors=False)
