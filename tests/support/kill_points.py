"""What a process leaves that is killed at its n-th write: a copy of the disk is taken before each write of one run.

What counts as a write is found in the libraries below the project, not in the project: Delta and Spark writers, delta-
rs, objects that are put into a store, every changing call of MLflow's client, and files that are opened for writing,
renamed or removed below a directory. A write that a stage gains is counted by itself.
"""

from __future__ import annotations

import functools
import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import deltalake
import mlflow
import pytest
from delta.tables import DeltaMergeBuilder, DeltaTable, DeltaTableBuilder
from obstore.store import LocalStore
from pyspark.sql.readwriter import DataFrameWriter

_WRITERS = {
    DataFrameWriter: ("save", "saveAsTable", "insertInto", "parquet", "json", "csv", "text", "orc"),
    DeltaTableBuilder: ("execute",),
    DeltaMergeBuilder: ("execute",),
    DeltaTable: ("delete", "update", "vacuum", "restoreToVersion", "restoreToTimestamp"),
}
_MLFLOW_CHANGES = ("create_", "set_", "log_", "update_", "delete_", "finalize_", "link_", "rename_", "restore_")
_WRITTEN_BY_CALLS = ("lake", "mlartifacts", "warehouse")
_MLFLOW_DATABASE = "mlflow.db"
LOCK_WITHIN_S = 120.0


@dataclass(frozen=True)
class KillPoint:
    """One write of a run.

    Attributes:
        name: the call, and the table or file.
        disk: copy of the world's directory as a process leaves it that is killed within this write.
    """

    name: str
    disk: Path


@dataclass
class KillPoints:
    """Copies the directory of a world before each write; writes come one after the other."""

    world: Path
    copies: Path
    found: list[KillPoint] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)  # a copy holds exactly the earlier writes
    _depth: int = 0

    def do(self, name: str, write: Callable[[], Any], leave: Callable[[Path], None] | None = None) -> Any:
        """Copy, then write; ``leave`` adds to the copy what a process that dies within the write leaves behind."""
        assert self._lock.acquire(timeout=LOCK_WITHIN_S), f"{name} waits for a write that waits for it"
        try:
            self._depth += 1
            if self._depth == 1:  # else it is part of a write that was counted
                point = KillPoint(name, self.copies / f"{len(self.found) + 1:03d}")
                copy_world(self.world, point.disk)
                if leave is not None:
                    leave(point.disk)
                self.found.append(point)
            return write()
        finally:
            self._depth -= 1
            self._lock.release()

    def on_file(self, event: str, path: Path, renamed: Path | None = None) -> None:
        """Count what Python does to a file of the world; files of tables and models are written by counted calls.

        Writing a file and renaming it is one write: before the renaming the temporary file is there as a whole.
        """
        if not path.is_relative_to(self.world) or path.relative_to(self.world).parts[0] in _WRITTEN_BY_CALLS:
            return
        if event == "os.remove" and not path.exists():
            return
        below = path.relative_to(self.world)
        if renamed is not None and self.found and self.found[-1].name == f"open {renamed.relative_to(self.world)}":
            shutil.rmtree(self.found.pop().disk)
        leave = (lambda disk: _leave_half_a_file(disk / below)) if event == "open" else None
        self.do(f"{event} {below}", lambda: None, leave)

    def leave_in_table(self, location: str, owner: type) -> Callable[[Path], None]:
        """Return what leaves a log without a commit of a creation, and of other writes a data file without one."""
        folder = Path(location).relative_to(self.world)

        def leave(disk: Path) -> None:
            if owner is LocalStore:
                (disk / folder / "_delta_log").mkdir(parents=True)
                (disk / folder / "_delta_log" / ".00000000000000000000.json.0b5c.tmp").write_text('{"commitInfo":')
            else:
                (disk / folder / "part-00000-killed.snappy.parquet").write_bytes(b"PAR1 half a file")

        return leave


def _leave_half_a_file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"as_of": "2026')


def copy_world(source: Path, target: Path) -> None:
    """Copy all that a stage finds; MLflow's artifacts stay where its database says they are."""
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name == _MLFLOW_DATABASE:
            with sqlite3.connect(entry) as result, sqlite3.connect(target / entry.name) as copied:
                result.backup(copied)
        elif entry.is_dir() and entry.name != "mlartifacts":
            shutil.copytree(entry, target / entry.name)
        elif entry.is_file() and entry.suffix != ".db-journal":
            shutil.copy2(entry, target / entry.name)


class _Busy(threading.local):
    """Whether this thread is inside the audit hook: taking a copy opens files, too."""

    is_busy = False


class _AuditHook:
    """The interpreter's audit hook: once installed it stays, so it follows whatever points are set."""

    points: KillPoints | None = None
    _thread = _Busy()

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        points = self.points
        if points is None or self._thread.is_busy or event not in {"open", "os.rename", "os.remove"}:
            return
        if event == "open" and not set(str(arguments[1])) & set("wax+"):
            return
        path = arguments[1] if event == "os.rename" else arguments[0]
        if isinstance(path, str | os.PathLike):
            self._thread.is_busy = True
            try:
                points.on_file(event, Path(path), Path(arguments[0]) if event == "os.rename" else None)
            finally:
                self._thread.is_busy = False


@functools.cache
def _audit_hook() -> _AuditHook:
    hook = _AuditHook()
    sys.addaudithook(hook)
    return hook


@contextmanager
def recording(points: KillPoints) -> Iterator[KillPoints]:
    """Take a copy before every write inside."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, names in _WRITERS.items():
            for name in names:
                patch.setattr(owner, name, _counted(points, owner, name))
        for name in dir(mlflow.MlflowClient):
            if name.startswith(_MLFLOW_CHANGES):
                patch.setattr(mlflow.MlflowClient, name, _counted(points, mlflow.MlflowClient, name))
        patch.setattr(DeltaTableBuilder, "location", _remember_location(DeltaTableBuilder.location))
        patch.setattr(deltalake, "write_deltalake", _counted_commit(points))
        patch.setattr(LocalStore, "put", _counted_put(points))
        patch.setattr(_audit_hook(), "points", points)
        yield points


def _counted(points: KillPoints, owner: type, name: str) -> Callable[..., Any]:
    method = getattr(owner, name)

    @functools.wraps(method)
    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        location = arguments[0] if method is _SAVE else getattr(self, "_location_of_tests", None)
        table = "/".join(Path(location).parts[-2:]) if location else ""
        leave = points.leave_in_table(location, owner) if location else None
        return points.do(f"{owner.__name__}.{name} {table}", lambda: method(self, *arguments, **options), leave)

    return counted


def _counted_commit(points: KillPoints) -> Callable[..., Any]:
    write = deltalake.write_deltalake

    @functools.wraps(write)
    def counted(table: deltalake.DeltaTable, *arguments: Any, **options: Any) -> Any:
        location = table.table_uri.removeprefix("file://").rstrip("/")
        return points.do(
            f"write_deltalake {'/'.join(Path(location).parts[-2:])}",
            lambda: write(table, *arguments, **options),
            points.leave_in_table(location, DataFrameWriter),
        )

    return counted


def _counted_put(points: KillPoints) -> Callable[..., Any]:
    put = LocalStore.put

    @functools.wraps(put)
    def counted(self: LocalStore, path: str, *arguments: Any, **options: Any) -> Any:
        location = str(self.prefix)
        leave = points.leave_in_table(location, LocalStore) if path.startswith("_delta_log/") else None
        name = f"LocalStore.put {'/'.join(Path(location).parts[-2:])}"
        return points.do(name, lambda: put(self, path, *arguments, **options), leave)

    return counted


_SAVE = DataFrameWriter.save


def _remember_location(method: Callable[..., DeltaTableBuilder]) -> Callable[..., DeltaTableBuilder]:
    def location(self: DeltaTableBuilder, path: str) -> DeltaTableBuilder:
        self._location_of_tests = path
        return method(self, path)

    return location
