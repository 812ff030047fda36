"""Takes a backup while everything goes on: all versions are chosen first, within a moment, and then copied."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from include.backup.backup_folder import BackupFolder
from include.backup.contents import MADE_AGAIN, PERSONS, RECORDS
from include.backup.manifest import BackedFile, BackupError, Manifest
from include.backup.registry_copy import copy_registry
from include.backup.table_copy import copy_table
from include.control.controlled_lake import LEASES_FOLDER
from include.control.small_objects import ObjectFolder
from include.object_store import open_store
from include.place import place
from include.settings import Settings
from include.tables import Table
from include.utc import format_utc
from include.version import VERSION


def take_backup(settings: Settings, backup: BackupFolder, now: datetime, *, with_ingested: bool) -> Manifest:
    """Copy what cannot be made again, or with what was ingested all, and write the manifest.

    Files that an earlier backup holds are not read again.

    Raises:
        BackupError: there is no lake, or a table cannot be copied.
        StoreUnreadableError: the lake does not answer.
    """
    lake = settings.paths.lake
    if not place(lake).is_dir():
        raise BackupError(f"there is no lake at {lake}")
    earlier = _read_earlier(backup, lake)
    versions = _choose_versions(lake, (*RECORDS, *MADE_AGAIN) if with_ingested else RECORDS)
    leases = read_lease_numbers(lake)
    objects: dict[str, BackedFile] = {}
    for folder in PERSONS:
        for name, content in ObjectFolder(lake, folder).read_all().items():
            objects[f"{folder}/{name}"] = backup.store(content)
    tables = {
        table.name: copy_table(
            lake, table, version, backup, None if earlier is None else earlier.tables.get(table.name)
        )
        for table, version in versions
    }
    registry = copy_registry(settings.mlflow, backup)
    at = now.replace(microsecond=0)
    manifest = Manifest(format_utc(at), VERSION, lake, settings.mlflow.artifact_root, tables, objects, leases, registry)
    backup.write_manifest(manifest)
    return manifest


def _read_earlier(backup: BackupFolder, lake: str) -> Manifest | None:
    with suppress(BackupError):
        newest = backup.read_newest()
        return newest if newest.lake == lake else None
    return None


def _choose_versions(lake: str, tables: tuple[Table, ...]) -> list[tuple[Table, int]]:
    result = []
    for table in tables:
        with suppress(TableNotFoundError):
            result.append((table, DeltaTable(f"{lake}/{table.relative_path}").version()))
    return result


def read_lease_numbers(lake: str) -> Mapping[str, int]:
    """Return cluster -> highest number of its lease."""
    result: dict[str, int] = {}
    for batch in open_store(lake).list(prefix=f"{LEASES_FOLDER}/"):
        for one in batch:
            folder, _, name = one["path"].removeprefix(f"{LEASES_FOLDER}/").partition("/")
            number = name.removesuffix(".json")
            if folder.startswith("cluster=") and number.isdigit():
                cluster = unquote(folder.removeprefix("cluster="))
                result[cluster] = max(result.get(cluster, 0), int(number))
    return result
