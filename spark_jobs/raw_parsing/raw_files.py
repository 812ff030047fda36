"""The raw files of a set of hours, and what lies below the raw root and can be none."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, cast

from pyspark.sql import SparkSession

LARGEST_BYTES = 2**30
"""A file that Hadoop reads passes from Spark to Python as one value, of which Spark takes less than 2 GiB."""
MOST_REFUSED = 1000
"""So many misplaced files and folders are named; then only their number."""
_CLUSTER = re.compile(r"cluster=(.+)", re.DOTALL)
_DATE = re.compile(r"date=(\d{4}-\d{2}-\d{2})")
_HOUR = re.compile(r"hour=([01]\d|2[0-3])")
_FILE = re.compile(r".+\.jsonl(\.gz)?", re.DOTALL)
Fault = tuple[str, str]
"""Reason in ops.quarantine, and detail."""


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


@dataclass(frozen=True, slots=True)
class Entry:
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

    def entries(self, place: str) -> list[Entry]:
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

    def entries(self, place: str) -> list[Entry]:
        """See :class:`FileSystem`."""
        try:
            with os.scandir(Path(self._root, place)) as found:
                return [self._entry(one) for one in found]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise FolderError(error.strerror or type(error).__name__) from error

    def locate(self, place: str) -> tuple[bytes | None, str]:
        """See :class:`FileSystem`."""
        return os.fsencode(Path(self._root, place)), ""

    @staticmethod
    def _entry(found: os.DirEntry[str]) -> Entry:
        try:
            status = found.stat()
        except OSError as error:
            return Entry(found.name, fault=("unreadable_file", error.strerror or type(error).__name__))
        if stat.S_ISDIR(status.st_mode):
            return Entry(found.name, is_folder=True, modified_s=status.st_mtime)
        fault = None if stat.S_ISREG(status.st_mode) else ("unreadable_file", "no regular file")
        return Entry(found.name, size=status.st_size, modified_s=status.st_mtime, fault=fault)


class HadoopFiles:
    """Any file system that Hadoop reaches."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._jvm = cast("Any", spark.sparkContext._jvm)
        self._root = root
        self._path = self._jvm.org.apache.hadoop.fs.Path
        self._system = self._path(root).getFileSystem(cast("Any", spark.sparkContext)._jsc.hadoopConfiguration())

    @property
    def is_local(self) -> bool:
        """Whether Python reaches the same files."""
        return str(self._system.getUri().getScheme()) == "file"

    @property
    def local_root(self) -> str:
        """The root as Python names it."""
        return str(self._path(self._root).toUri().getPath())

    def entries(self, place: str) -> list[Entry]:
        """See :class:`FileSystem`."""
        folder = self._folder(place)
        try:
            if not self._system.exists(folder):
                return []
            found = self._system.listStatus(folder)
        except Exception as error:  # whatever Java raised: a folder that cannot be listed must not stop the others
            raise FolderError(str(error).splitlines()[0]) from error
        return [
            Entry(
                str(one.getPath().getName()),
                is_folder=bool(one.isDirectory()),
                size=int(one.getLen()),
                modified_s=int(one.getModificationTime()) / 1000,
            )
            for one in found
        ]

    def locate(self, place: str) -> tuple[bytes | None, str]:
        """See :class:`FileSystem`."""
        return None, str(self._system.makeQualified(self._folder(place)).toString())

    def _folder(self, place: str) -> Any:
        folder = self._path(self._root)
        for part in filter(None, place.split("/")):
            folder = self._path(folder, self._path(None, None, part))  # a colon would begin a scheme
        return folder


def find_file_system(spark: SparkSession, root: str) -> FileSystem:
    """Return how the files below a root are reached."""
    found = HadoopFiles(spark, root)
    return LocalFiles(found.local_root) if found.is_local else found


def list_files(spark: SparkSession, root: str, hours: Iterable[datetime]) -> list[RawFile]:
    """Return the raw files in the directories of ``hours``, of every cluster, by name.

    The root may be any URI that Hadoop reaches; hours without a directory are passed over, hidden files too (a writer's
    temporary files start with a dot).
    """
    return [file for file in walk(find_file_system(spark, root), hours) if not _is_misplaced(file)]


def list_files_and_faults(spark: SparkSession, root: str, hours: Iterable[datetime]) -> list[RawFile]:
    """Return the raw files of ``hours``, and as files with a fault what lies where no raw file can.

    What belongs to no hour, as a folder ``hour=24``, is told with the first of ``hours`` of its day; what belongs to no
    day, with the first of all.  So it is told again and again until someone puts it right.
    """
    found = list(walk(find_file_system(spark, root), hours))
    misplaced = [file for file in found if _is_misplaced(file)]
    if len(misplaced) <= MOST_REFUSED:
        return found
    more = f"and {len(misplaced) - MOST_REFUSED} more"
    kept = set(misplaced[:MOST_REFUSED])
    last = misplaced[MOST_REFUSED - 1]
    found = [file for file in found if not _is_misplaced(file) or file in kept]
    return [*found, RawFile(more, last.cluster, last.hour, fault=("misplaced_file", more))]


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
            yield _misplaced(top.name, "", wanted[0], "expected a folder cluster=<name>")
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
            yield _misplaced(below, cluster, first, "expected a folder date=YYYY-MM-DD")
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
            yield _misplaced(below, cluster, hours[0], "expected a folder hour=HH, 00 to 23")
        elif hour := next((hour for hour in hours if hour.hour == int(named[1])), None):
            yield from _walk_hour(files, below, cluster, hour)


def _walk_hour(files: FileSystem, place: str, cluster: str, hour: datetime) -> Iterator[RawFile]:
    for entry in _entries(files, place, cluster, hour):
        if isinstance(entry, RawFile):
            yield entry
            continue
        below = f"{place}/{entry.name}"
        if entry.is_folder or not _FILE.fullmatch(entry.name):
            yield _misplaced(below, cluster, hour, "expected a file <name>.jsonl or <name>.jsonl.gz")
            continue
        local_path, uri = files.locate(below)
        yield RawFile(
            *(show_name(below), cluster, hour, entry.size, entry.modified_s, local_path, uri),
            fault=_size_fault(entry.size),
        )


def _entries(files: FileSystem, place: str, cluster: str, hour: datetime) -> Iterator[Entry | RawFile]:
    """Yield what a folder holds without hidden entries, by name; as a file with a fault what cannot be looked at."""
    try:
        found = sorted(files.entries(place), key=lambda entry: entry.name)
    except FolderError as error:
        yield RawFile(show_name(place) or "/", cluster, hour, fault=("unreadable_folder", str(error)))
        return
    for entry in found:
        if entry.name.startswith((".", "_")):
            continue
        if entry.fault is not None:
            name = show_name(f"{place}/{entry.name}".lstrip("/"))
            yield RawFile(name, cluster, hour, entry.size, entry.modified_s, fault=entry.fault)
        else:
            yield entry


def _misplaced(place: str, cluster: str, hour: datetime, expected: str) -> RawFile:
    return RawFile(show_name(place), cluster, hour, fault=("misplaced_file", expected))


def _is_misplaced(file: RawFile) -> bool:
    return file.fault is not None and file.fault[0] == "misplaced_file"


def _size_fault(size: int) -> Fault | None:
    if 0 < size <= LARGEST_BYTES:
        return None
    return "file_too_large" if size else "empty_file", f"{size} bytes"


def _is_day(text: str) -> bool:
    try:
        datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return False
    return True


def show_name(name: str) -> str:
    """Return a file's name as valid UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def hour_range(start: datetime, end: datetime) -> list[datetime]:
    """Return the starts of the hours in ``[start, end)``."""
    return [start + timedelta(hours=offset) for offset in range(int((end - start) / timedelta(hours=1)))]
