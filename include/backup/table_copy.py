"""One Delta table at one version, as files: written to a backup while others go on committing, and put back.

Data files and commits are never changed once they are there, so a version is read whole however long that takes; one
that an upkeep removes meanwhile is too old to be read, and the newest is taken instead.
"""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from include.atomic_write import write_bytes
from include.backup.backup_folder import BackupFolder
from include.backup.manifest import BackedFile, BackedTable, BackupError
from include.place import is_object, join_name, place, remove_all
from include.tables import Table

_LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
_TRIES = 3
_UNREAD = frozenset({"deletionVectors"})
"""Features of a table by which its data files alone do not tell its rows; Tidewise makes none."""


def copy_table(
    lake: str, table: Table, version: int, backup: BackupFolder, earlier: BackedTable | None = None
) -> BackedTable:
    """Copy a table at the version that it had when the backup began, without data files that an earlier backup has.

    Raises:
        BackupError: it cannot be copied.
    """
    for remaining in range(_TRIES - 1, -1, -1):
        try:
            return _copy_once(lake, table, version, backup, {} if earlier is None else earlier.files)
        except FileNotFoundError as error:
            if not remaining:
                raise BackupError(
                    f"{table.name}: files go while they are copied ({error}): is an upkeep on?"
                ) from error
            version = DeltaTable(f"{lake}/{table.relative_path}").version()
    raise AssertionError("the loop returns or raises")


def _copy_once(
    lake: str, table: Table, version: int, backup: BackupFolder, earlier: Mapping[str, BackedFile]
) -> BackedTable:
    path = f"{lake}/{table.relative_path}"
    delta = DeltaTable(path, version=version)
    unread = _UNREAD & set(delta.protocol().reader_features or ())
    if unread:
        raise BackupError(f"{table.name} uses {', '.join(sorted(unread))}, which a backup of its files would lose")
    root, files = place(path), dict[str, BackedFile]()
    added = delta.get_add_actions()
    for name, size in zip(added["path"].to_pylist(), added["size_bytes"].to_pylist(), strict=True):
        known = earlier.get(name)
        if known is not None and known.size_bytes == size and backup.holds(known.sha256):
            files[name] = known
            continue
        content = (root / name).read_bytes()
        files[name] = backup.store(content, pq.read_metadata(io.BytesIO(content)).num_rows)
    for name in _list_log(root / _LOG, version):
        files[f"{_LOG}/{name}"] = backup.store((root / _LOG / name).read_bytes())
    return BackedTable(version, files)


def _list_log(folder: Path, version: int) -> list[str]:
    """Return the files of a log that open a version: the newest checkpoint before it, and the commits since."""
    names = [path.name for path in folder.iterdir()]
    parts: dict[int, list[str]] = {}
    for name, made in ((name, _CHECKPOINT.fullmatch(name)) for name in names):
        if made is not None and int(made[1]) <= version:
            parts.setdefault(int(made[1]), []).append(name)
    whole = [at for at, listed in parts.items() if len(listed) == _count_parts(listed[0])]
    since = max(whole, default=-1)
    commits = {int(made[1]): name for name in names if (made := _COMMIT.fullmatch(name))}
    wanted = range(max(since, 0), version + 1)  # the commit of the checkpoint itself tells its time
    missing = [number for number in wanted if number not in commits and number != since]
    if missing:
        raise FileNotFoundError(f"commit {missing[0]} of {folder}")
    return [*parts.get(since, ()), *(commits[number] for number in wanted if number in commits)]


def _count_parts(name: str) -> int:
    made = _CHECKPOINT.fullmatch(name)
    return int(made[2]) if made is not None and made[2] else 1


def put_back(lake: str, table: Table, copy: BackedTable, backup: BackupFolder) -> None:
    """Write a table, which must not be there, as it was.

    Data files come first and the log last, its oldest file after all others: a table that is half there opens for
    nobody.

    Raises:
        DamagedBackupError: a file of the backup is not what it was.
        BackupError: the table does not open as it was.
    """
    path = f"{lake}/{table.relative_path}"
    root = place(path)
    log = sorted(name for name in copy.files if name.startswith(f"{_LOG}/"))
    data = [name for name in copy.files if name not in log]
    for name in (*data, *reversed(log)):
        write_bytes(join_name(root, name), backup.load(copy.files[name]))
    check_table(path, table, copy)


def check_table(path: str, table: Table, copy: BackedTable) -> None:
    """Open a table and compare version, files and rows with its copy.

    Raises:
        BackupError: they differ.
    """
    delta = DeltaTable(path)
    added = delta.get_add_actions()
    expected = {name: one.size_bytes for name, one in copy.files.items() if not name.startswith(f"{_LOG}/")}
    present = dict(zip(added["path"].to_pylist(), added["size_bytes"].to_pylist(), strict=True))
    if (delta.version(), present) != (copy.version, expected):
        raise BackupError(
            f"{table.name}: version {delta.version()} with {len(present)} files, not {copy.version} with"
            f" {len(expected)}: is somebody writing there? Stop that and restore again"
        )
    rows = sum(len(batch) for batch in pa.RecordBatchReader.from_stream(delta.scan([table.keys[0]], "true")))
    if rows != copy.rows:
        raise BackupError(f"{table.name}: {rows} rows, not {copy.rows}")


def remove_table(lake: str, table: Table) -> bool:
    """Remove everything below a table's path, its log first; returns whether there was anything."""
    root = place(f"{lake}/{table.relative_path}")
    if is_object(root):
        there = root.is_dir()
        remove_all([root / _LOG, root])
        return there
    if not root.is_dir():
        return False
    shutil.rmtree(root / _LOG, ignore_errors=True)
    shutil.rmtree(root)
    return True


def is_there(lake: str, table: Table) -> bool:
    """Whether anything lies below a table's path."""
    root = place(f"{lake}/{table.relative_path}")
    return root.is_dir() and next(iter(root.iterdir()), None) is not None
