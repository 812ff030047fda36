"""Puts a backup back where the settings say, under the leases of all clusters, so that no controller acts meanwhile.

In this order: everything is on hold, and the lake says that it was restored; then records, what persons had set, and
models. Killed anywhere, it is run again. What the controller does with such a lake: controller/log/unknown_jobs.py.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from controller.leases.lease import Lease, LeaseTerm
from controller.leases.lease_keeper import keep_renewed
from include.backup.backup_folder import BackupFolder
from include.backup.contents import NEVER
from include.backup.manifest import BackupError, Manifest
from include.backup.registry_copy import is_registry_there, put_registry_back
from include.backup.table_copy import check_table, is_there, put_back, remove_table
from include.backup.take_backup import read_lease_numbers
from include.control import approvals, undo_orders
from include.control.holds import EVERYTHING, Hold, HoldStore
from include.control.restores import Restore, RestoreStore
from include.control.small_objects import ObjectFolder
from include.lake_table import LakeTable
from include.object_store import open_store
from include.settings import Settings
from include.tables import BY_PERSONS, CONTROL_LOG, CONTROLLED, TABLES, Table
from include.utc import format_utc

HOLD_NAME = "restored-from-a-backup.json"
_ALL = {table.name: table for table in (*TABLES, *CONTROLLED, *BY_PERSONS)}
_TERM_S = 180.0


def find_obstacles(settings: Settings, manifest: Manifest) -> list[str]:
    """Return what a restore would take the place of; empty where it would of nothing."""
    restored = RestoreStore(settings.paths.lake).read()
    if restored is not None and not restored.is_whole and restored.backup_at_s == manifest.at.timestamp():
        return []  # the same restore was begun, and has not ended
    lake = settings.paths.lake
    tables = [table for table in (*_tables_of(manifest), *NEVER) if is_there(lake, table)]
    result = [f"table {table.name}" for table in tables]
    if manifest.registry.database is not None and is_registry_there(settings.mlflow):
        result.append("MLflow's registry")
    return result


def check_contents(manifest: Manifest, backup: BackupFolder) -> int:
    """Read every content of a backup once; returns how many there are.

    Raises:
        DamagedBackupError: one is gone or damaged; nothing was restored.
    """
    files = {one.sha256: one for one in manifest.list_files()}
    for one in files.values():
        backup.load(one)
    return len(files)


def restore(
    settings: Settings,
    manifest: Manifest,
    backup: BackupFolder,
    clusters: Iterable[str],
    by: str,
    *,
    clock: Callable[[], float],
) -> Restore:
    """Put a backup back, in the place of what is there.

    Raises:
        BackupError: a controller is at work, or what was restored is not what was backed up.
        StoreUnreadableError: the lake does not answer.
    """
    lake = settings.paths.lake
    open_store(lake)  # which makes the folder
    known = {*clusters, *manifest.leases, *read_lease_numbers(lake)}
    with _hold_leases(lake, sorted(known), clock) as leases:
        numbers = {name: _raise_number(lease, manifest.leases.get(name, 0)) for name, lease in leases.items()}
        began = Restore(clock(), manifest.at.timestamp(), numbers, is_whole=False, by=by)
        hold = Hold(EVERYTHING, "a restore has begun and has not ended: run tidewise restore again", by, began.at_s)
        HoldStore(lake).write(hold, HOLD_NAME)
        RestoreStore(lake).write(began)
        for table in NEVER:
            remove_table(lake, table)
        for table in _tables_of(manifest):
            remove_table(lake, table)
            put_back(lake, table, manifest.tables[table.name], backup)
        _restore_objects(lake, manifest, backup)
        put_registry_back(settings.mlflow, manifest.registry, manifest.artifact_root, backup)
        logged = _read_logged_leases(lake)
        numbers = {name: _raise_number(lease, logged.get(name, 0)) for name, lease in leases.items()}
        for table in _tables_of(manifest):
            check_table(f"{lake}/{table.relative_path}", table, manifest.tables[table.name])
        ended = Restore(began.at_s, began.backup_at_s, numbers, is_whole=True, by=by)
        RestoreStore(lake).write(ended)
        reason = f"restored from the backup of {manifest.made_at}: look at the jobs, then tidewise release --all"
        HoldStore(lake).write(Hold(EVERYTHING, reason, by, began.at_s), HOLD_NAME)
    return ended


@contextmanager
def _hold_leases(lake: str, clusters: Iterable[str], clock: Callable[[], float]) -> Iterator[Mapping[str, Lease]]:
    """Hold the lease of every cluster; a controller that comes to it then finds another number than its own."""
    owner = f"tidewise restore on {socket.gethostname()}:{os.getpid()}"
    with ExitStack() as stack:
        leases: dict[str, Lease] = {}
        for cluster in clusters:
            lease = Lease(lake, cluster, owner, clock, expiry_s=_TERM_S)
            if not lease.take():
                raise BackupError(_describe_holder(cluster, lease.read_newest()))
            stack.callback(lease.release)
            leases[cluster] = lease
        for lease in leases.values():
            stack.enter_context(keep_renewed(lease))
        yield leases


def _describe_holder(cluster: str, term: LeaseTerm | None) -> str:
    if term is None:
        return f"another took the lease of cluster {cluster}: run it again"
    until = format_utc(datetime.fromtimestamp(round(term.until_s), UTC))
    return f"{term.owner} holds the lease of cluster {cluster} until {until}: stop that controller, or wait until then"


def _raise_number(lease: Lease, number: int) -> int:
    """Return the number of a lease, after it was raised above another: rows are ordered by it."""
    if lease.number <= number:
        lease.skip_to(number + 1)
    return lease.number


def _read_logged_leases(lake: str) -> dict[str, int]:
    """Return cluster -> highest number of a lease under which the restored log has a row."""
    table = LakeTable(lake, CONTROL_LOG)
    rows = table.read(["cluster", "lease_number"], datetime.min.date(), datetime.max.date())
    highest = rows.group_by("cluster").aggregate([("lease_number", "max")])
    return dict(zip(highest["cluster"].to_pylist(), highest["lease_number_max"].to_pylist(), strict=True))


def _tables_of(manifest: Manifest) -> list[Table]:
    unknown = sorted(set(manifest.tables) - set(_ALL))
    if unknown:
        raise BackupError(f"the backup has {', '.join(unknown)}, which this release does not know")
    return [_ALL[name] for name in manifest.tables]


def _restore_objects(lake: str, manifest: Manifest, backup: BackupFolder) -> None:
    """Put back what persons had set, but for permissions, and remove those that are there.

    What a person has set since stays: a hold put now is to hold.
    """
    for path, one in manifest.objects.items():
        folder, _, name = path.rpartition("/")
        target = ObjectFolder(lake, folder)
        content = backup.load(one)
        if name in target.read_all() or (folder == approvals.FOLDER and not _is_denial(content)):
            continue
        target.write(name, content)
    given = ObjectFolder(lake, approvals.FOLDER)
    for name, content in given.read_all().items():
        if not _is_denial(content):
            given.delete(name)
    orders = ObjectFolder(lake, undo_orders.FOLDER)
    for name in orders.read_all():
        orders.delete(name)


def _is_denial(content: bytes) -> bool:
    """Whether an answer says no; one that cannot be read may have been a no, and voids every yes."""
    try:
        return json.loads(content).get("is_approved") is not True
    except (ValueError, AttributeError):
        return True
