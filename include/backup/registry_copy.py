"""MLflow's registry as files: its SQLite database by SQLite's own online backup, then the artifacts.

The database first: an artifact is logged before anything in the database names it, so all that it names is there.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from include.atomic_write import replace_atomically, write_bytes
from include.backup.backup_folder import BackupFolder
from include.backup.manifest import BackedFile, BackedRegistry, BackupError
from include.object_store import local_folder
from include.place import is_object, join_name, place
from include.settings import Mlflow

_SQLITE = "sqlite:///"
_LOCATIONS = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "storage_location"),
    ("model_versions", "source"),
)
"""Columns of MLflow's database that name files by an absolute location."""


def copy_registry(mlflow: Mlflow, backup: BackupFolder) -> BackedRegistry:
    """Copy database and artifacts into a backup; artifacts of a server are left to it."""
    file = database_file(mlflow)
    if file is None:
        scheme = mlflow.tracking_uri.partition(":")[0]
        return BackedRegistry(None, {}, missing=f"mlflow.tracking_uri is {scheme}:, which has a backup of its own")
    if not file.is_file():
        return BackedRegistry(None, {}, missing="nothing was ever trained")
    with tempfile.TemporaryDirectory(prefix="tidewise-") as folder:
        copied = Path(folder) / "mlflow.db"
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copied)) as target:
            source.backup(target)
            (versions,) = target.execute("SELECT count(*) FROM model_versions").fetchone()
        database = backup.store(copied.read_bytes())
    root = artifact_folder(mlflow)
    artifacts: dict[str, BackedFile] = {name: backup.store((root / name).read_bytes()) for name in _list_files(root)}
    return BackedRegistry(database, artifacts, int(versions))


def put_registry_back(mlflow: Mlflow, copy: BackedRegistry, artifact_root: str, backup: BackupFolder) -> None:
    """Write artifacts, then the database, whose locations are those of the settings now.

    Raises:
        DamagedBackupError: a file of the backup is not what it was.
        BackupError: the database is damaged, or the settings name none of SQLite.
    """
    if copy.database is None:
        return
    file, root = database_file(mlflow), artifact_folder(mlflow)
    if file is None:
        raise BackupError("the backup has a SQLite database of MLflow: let mlflow.tracking_uri name one, sqlite:///...")
    for name, one in copy.artifacts.items():
        write_bytes(join_name(root, name), backup.load(one))
    with replace_atomically(file) as temporary:
        temporary.write_bytes(backup.load(copy.database))
        with closing(sqlite3.connect(temporary)) as database:
            _move_locations(database, _as_uri(artifact_root), _as_uri(mlflow.artifact_root))
            (answer,) = database.execute("PRAGMA integrity_check").fetchone()
            (versions,) = database.execute("SELECT count(*) FROM model_versions").fetchone()
        if (answer, versions) != ("ok", copy.model_versions):
            raise BackupError(f"MLflow's database: {answer}, {versions} versions, not {copy.model_versions}")
        for leftover in ("-wal", "-shm", "-journal"):  # of the database that was there
            file.with_name(f"{file.name}{leftover}").unlink(missing_ok=True)


def _move_locations(database: sqlite3.Connection, old: str, new: str) -> None:
    """Replace the root of what was logged; a location elsewhere stays."""
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table, column in _LOCATIONS:
        if table not in tables or old == new:
            continue
        database.execute(
            f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE {column} = ? OR substr({column}, 1, ?) = ?",
            (new, len(old) + 1, old, len(old) + 1, f"{old}/"),
        )
    database.commit()


def is_registry_there(mlflow: Mlflow) -> bool:
    """Whether there is a database or an artifact where the settings say."""
    file = database_file(mlflow)
    return (file is not None and file.exists()) or next(_list_files(artifact_folder(mlflow)), None) is not None


def database_file(mlflow: Mlflow) -> Path | None:
    """Return MLflow's SQLite file; None where the settings name another database or a server."""
    if not mlflow.tracking_uri.startswith(_SQLITE):
        return None
    return Path(mlflow.tracking_uri.removeprefix(_SQLITE).partition("?")[0])


def list_numbers(mlflow: Mlflow) -> list[int] | None:
    """Return the versions that MLflow's SQLite file has, without loading MLflow; None of another database."""
    file = database_file(mlflow)
    if file is None or not file.is_file():
        return None if file is None else []
    asked = "SELECT version FROM model_versions WHERE name = ? ORDER BY version"
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
        return [int(number) for (number,) in database.execute(asked, (mlflow.registered_model,))]


def artifact_folder(mlflow: Mlflow) -> Path:
    """Return the root of the artifacts."""
    return local_folder(mlflow.artifact_root) or place(mlflow.artifact_root)


def _as_uri(root: str) -> str:
    folder = local_folder(root)
    return root.rstrip("/") if folder is None else folder.resolve().as_uri()


def _list_files(root: Path) -> Iterator[str]:
    if not is_object(root) and not root.is_dir():
        return
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.name.endswith(".tmp"):
            yield str(path)[len(str(root)) + 1 :]
