"""Where raw files are found: on a file system that is mounted, or through Hadoop."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, cast

from pyspark.sql import SparkSession

from include.raw_files import MISPLACED, FileEntry, FileSystem, FolderError, LocalFiles, RawFile, walk

MOST_REFUSED = 1000
"""So many misplaced files and folders are named; then only their number."""


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

    def entries(self, place: str) -> list[FileEntry]:
        """See :class:`FileSystem`."""
        try:
            result = self._system.listStatus(self._folder(place))
        except Exception as error:  # whatever Java raised: a folder that cannot be listed must not stop the others
            if _is_missing(error):  # not asked for before: in a bucket these are two requests more for each folder
                return []
            raise FolderError(str(error).splitlines()[0]) from error
        return [
            FileEntry(
                str(one.getPath().getName()),
                is_folder=bool(one.isDirectory()),
                size=int(one.getLen()),
                modified_s=int(one.getModificationTime()) / 1000,
            )
            for one in result
        ]

    def locate(self, place: str) -> tuple[bytes | None, str]:
        """See :class:`FileSystem`."""
        return None, str(self._system.makeQualified(self._folder(place)).toString())

    def _folder(self, place: str) -> Any:
        folder = self._path(self._root)
        for part in filter(None, place.split("/")):
            folder = self._path(folder, self._path(None, None, part))  # a colon would begin a scheme
        return folder


def _is_missing(error: Exception) -> bool:
    """Whether Java says that a path is not there; of a bucket that is not there it says something else."""
    raised: Any = getattr(error, "java_exception", None)
    return raised is not None and str(raised.getClass().getName()) == "java.io.FileNotFoundException"


def find_file_system(spark: SparkSession, root: str) -> FileSystem:
    """Return how the files below a root are reached."""
    result = HadoopFiles(spark, root)
    return LocalFiles(result.local_root) if result.is_local else result


def list_files(spark: SparkSession, root: str, hours: Iterable[datetime]) -> list[RawFile]:
    """Return the raw files in the directories of ``hours``, of every cluster, by name.

    The root may be any URI that Hadoop reaches; hours without a directory are passed over, hidden files too (a writer's
    temporary files start with a dot).
    """
    return [file for file in walk(find_file_system(spark, root), hours) if not file.is_misplaced]


def list_files_and_faults(spark: SparkSession, root: str, hours: Iterable[datetime]) -> list[RawFile]:
    """Return the raw files of ``hours``, and as files with a fault what lies where no raw file can.

    What belongs to no hour, as a folder ``hour=24``, is told with the first of ``hours`` of its day; what belongs to no
    day, with the first of all.  So it is told again and again until someone puts it right.
    """
    result = list(walk(find_file_system(spark, root), hours))
    misplaced = [file for file in result if file.is_misplaced]
    named, others = misplaced[:MOST_REFUSED], set(misplaced[MOST_REFUSED:])
    if not others:
        return result
    more, last = f"and {len(misplaced) - MOST_REFUSED} more", named[-1]
    result = [file for file in result if file not in others]
    return [*result, RawFile(more, last.cluster, last.hour, fault=(MISPLACED, more))]


def hour_range(start: datetime, end: datetime) -> list[datetime]:
    """Return the starts of the hours in ``[start, end)``."""
    return [start + timedelta(hours=offset) for offset in range(int((end - start) / timedelta(hours=1)))]
