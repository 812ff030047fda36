"""The raw files of a set of hours, and what lies below the raw root and can be none.

The layout is that of :mod:`include.flink.raw_format`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from include.domain.quarantine_rules import Rule
from include.place import ObjectPath

LARGEST_BYTES = 2**30
"""A file that Hadoop reads passes from Spark to Python as one value, of which Spark takes less than 2 GiB."""
_CLUSTER = re.compile(r"cluster=(.+)", re.DOTALL)
_DATE = re.compile(r"date=(\d{4}-\d{2}-\d{2})")
_HOUR = re.compile(r"hour=([01]\d|2[0-3])")
_FILE = re.compile(r".+\.jsonl(\.gz)?", re.DOTALL)
LAYOUT = "cluster=<name>/date=YYYY-MM-DD/hour=HH/<name>.jsonl or .jsonl.gz"
"""Where raw files lie below their root, for messages."""
MISPLACED, EMPTY, TOO_LARGE = Rule.MISPLACED_FILE, Rule.EMPTY_FILE, Rule.FILE_TOO_LARGE
UNREADABLE, UNREADABLE_FOLDER, CORRUPT = Rule.UNREADABLE_FILE, Rule.UNREADABLE_FOLDER, Rule.CORRUPT_FILE
KAFKA_PREFIX = "kafka-"
"""Of files with the offsets of topics, which come beside a cluster's samples from whatever source."""
HISTORY_MANIFEST = "history.manifest.json"
PASSED_OVER = frozenset({HISTORY_MANIFEST, "README.md"})
"""What commands and people put beside raw files, and is none."""
Fault = tuple[Rule, str]
"""Rule that is broken, and detail."""


@dataclass(frozen=True, slots=True)
class RawFile:
    r"""One file of raw lines.

    Attributes:
        name: path below the raw root, as tables name it: valid UTF-8, bytes that are none written as ``\xff``.
        cluster: from the directory ``cluster=...``; empty for what lies outside such a directory.
        hour: start of the hour of the directory.
        size: bytes.
        modified_s: when it was written, epoch seconds.
        local_path: where Python opens it; None when only Hadoop reaches it.
        uri: where Hadoop reads it.
        fault: why it cannot be read; None when it can.
    """

    name: str
    cluster: str
    hour: datetime
    size: int = 0
    modified_s: float = 0.0
    local_path: bytes | None = None
    uri: str = ""
    fault: Fault | None = None

    @property
    def is_readable(self) -> bool:
        """Whether there is something in it, and no more than can be read at once."""
        return self.fault is None

    @property
    def is_misplaced(self) -> bool:
        """Whether it lies where no raw file can be."""
        return self.fault is not None and self.fault[0] == MISPLACED


def is_raw_name(name: str) -> bool:
    """Whether ingestion reads a file of this name in the folder of an hour."""
    return not name.startswith((".", "_")) and _FILE.fullmatch(name) is not None


def list_file_hours(root: Path) -> list[datetime]:
    """Return the hours of which a folder has raw files with something in them, in order."""
    result = set()
    for folder in root.glob("cluster=*/date=*/hour=*"):
        day, hour = _DATE.fullmatch(folder.parent.name), _HOUR.fullmatch(folder.name)
        if day is None or hour is None or not _is_day(day[1]) or not folder.is_dir():
            continue
        if any(is_raw_name(path.name) and path.is_file() and path.stat().st_size for path in folder.iterdir()):
            result.add(datetime.fromisoformat(f"{day[1]}T{hour[1]}:00:00+00:00"))
    return sorted(result)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """What a folder holds under one name; ``fault`` says why it cannot be looked at."""

    name: str
    is_folder: bool = False
    size: int = 0
    modified_s: float = 0.0
    fault: Fault | None = None


class FolderError(Exception):
    """A folder cannot be listed; the message says why."""


class FileSystem(Protocol):
    """What is needed of a file system."""

    def entries(self, place: str) -> list[FileEntry]:
        """Return what a folder below the root holds; nothing when it is not there.

        Raises:
            FolderError: it cannot be listed.
        """
        ...

    def locate(self, place: str) -> tuple[bytes | None, str]:
        """Return where Python opens a file (None: it cannot), and where Hadoop reads it."""
        ...


class LocalFiles:
    """A file system that is mounted: any name that it allows."""

    def __init__(self, root: str) -> None:
        self._root = root

    def entries(self, place: str) -> list[FileEntry]:
        """See :class:`FileSystem`."""
        try:
            with os.scandir(Path(self._root, place)) as result:
                return [self._entry(one) for one in result]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise FolderError(error.strerror or type(error).__name__) from error

    def locate(self, place: str) -> tuple[bytes | None, str]:
        """See :class:`FileSystem`."""
        return os.fsencode(Path(self._root, place)), ""

    @staticmethod
    def _entry(result: os.DirEntry[str]) -> FileEntry:
        try:
            status = result.stat()
        except OSError as error:
            return FileEntry(result.name, fault=(UNREADABLE, error.strerror or type(error).__name__))
        if stat.S_ISDIR(status.st_mode):
            return FileEntry(result.name, is_folder=True, modified_s=status.st_mtime)
        fault = None if stat.S_ISREG(status.st_mode) else (UNREADABLE, "no regular file")
        return FileEntry(result.name, size=status.st_size, modified_s=status.st_mtime, fault=fault)


class ObjectFiles:
    """The objects of a bucket."""

    def __init__(self, root: str) -> None:
        self._root = ObjectPath(root)

    def entries(self, place: str) -> list[FileEntry]:
        """See :class:`FileSystem`."""
        try:
            listed = (self._root / place).list_sizes()
        except OSError as error:
            raise FolderError(str(error)) from error
        return [FileEntry(name, True) if one is None else FileEntry(name, False, *one) for name, one in listed.items()]

    def locate(self, place: str) -> tuple[bytes | None, str]:
        """See :class:`FileSystem`."""
        return None, str(self._root / place)


def walk(files: FileSystem, hours: Iterable[datetime]) -> Iterator[RawFile]:
    """Yield the files of ``hours`` in the order of their names, and what is misplaced or cannot be read."""
    wanted = sorted(hours)
    if not wanted:
        return
    days: dict[str, list[datetime]] = {}
    for hour in wanted:
        days.setdefault(f"{hour:%Y-%m-%d}", []).append(hour)
    for top in _entries(files, "", "", wanted[0]):
        if isinstance(top, RawFile):
            yield top
        elif not top.is_folder or not (named := _CLUSTER.fullmatch(top.name)):
            yield _refuse_place(top.name, "", wanted[0], "expected a folder cluster=<name>")
        else:
            yield from _walk_cluster(files, top.name, show_name(named[1]), days, wanted[0])


def _walk_cluster(
    files: FileSystem, place: str, cluster: str, days: dict[str, list[datetime]], first: datetime
) -> Iterator[RawFile]:
    for entry in _entries(files, place, cluster, first):
        if isinstance(entry, RawFile):
            yield entry
            continue
        below = f"{place}/{entry.name}"
        named = _DATE.fullmatch(entry.name) if entry.is_folder else None
        if named is None or not _is_day(named[1]):
            yield _refuse_place(below, cluster, first, "expected a folder date=YYYY-MM-DD")
        elif named[1] in days:
            yield from _walk_day(files, below, cluster, days[named[1]])


def _walk_day(files: FileSystem, place: str, cluster: str, hours: list[datetime]) -> Iterator[RawFile]:
    for entry in _entries(files, place, cluster, hours[0]):
        if isinstance(entry, RawFile):
            yield entry
            continue
        below = f"{place}/{entry.name}"
        named = _HOUR.fullmatch(entry.name) if entry.is_folder else None
        if named is None:
            yield _refuse_place(below, cluster, hours[0], "expected a folder hour=HH, 00 to 23")
        elif hour := next((hour for hour in hours if hour.hour == int(named[1])), None):
            yield from _walk_hour(files, below, cluster, hour)


def _walk_hour(files: FileSystem, place: str, cluster: str, hour: datetime) -> Iterator[RawFile]:
    for entry in _entries(files, place, cluster, hour):
        if isinstance(entry, RawFile):
            yield entry
            continue
        below = f"{place}/{entry.name}"
        if entry.is_folder or not _FILE.fullmatch(entry.name):
            yield _refuse_place(below, cluster, hour, "expected a file <name>.jsonl or <name>.jsonl.gz")
            continue
        local_path, uri = files.locate(below)
        yield RawFile(
            *(show_name(below), cluster, hour, entry.size, entry.modified_s, local_path, uri),
            fault=_size_fault(entry.size),
        )


def _entries(files: FileSystem, place: str, cluster: str, hour: datetime) -> Iterator[FileEntry | RawFile]:
    """Yield what a folder holds without hidden entries, by name; as a file with a fault what cannot be looked at."""
    try:
        result = sorted(files.entries(place), key=lambda entry: entry.name)
    except FolderError as error:
        yield RawFile(show_name(place) or "/", cluster, hour, fault=(UNREADABLE_FOLDER, str(error)))
        return
    for entry in result:
        if entry.name.startswith((".", "_")) or entry.name in PASSED_OVER:
            continue
        if entry.fault is not None:
            name = show_name(f"{place}/{entry.name}".lstrip("/"))
            yield RawFile(name, cluster, hour, entry.size, entry.modified_s, fault=entry.fault)
        else:
            yield entry


def _refuse_place(place: str, cluster: str, hour: datetime, expected: str) -> RawFile:
    return RawFile(show_name(place), cluster, hour, fault=(MISPLACED, expected))


def _size_fault(size: int) -> Fault | None:
    if 0 < size <= LARGEST_BYTES:
        return None
    return TOO_LARGE if size else EMPTY, f"{size} bytes"


def _is_day(text: str) -> bool:
    try:
        datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return False
    return True


def show_name(name: str) -> str:
    """Return a file's name as valid UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
