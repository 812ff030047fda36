"""``tidewise backup``: copies what cannot be made again from raw files: records, what persons have set, models.

Everything may go on meanwhile. A later backup to the same place copies only what is new there.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from rich.table import Table

from cli.arguments import CommandParser, require_writable, whole_number
from cli.command import add_out, command
from cli.out_lock import hold_paths
from cli.run_table import open_console
from include.backup.backup_folder import open_folder
from include.backup.manifest import BackupError, Manifest
from include.backup.take_backup import take_backup
from include.place import place


def contents_table(manifest: Manifest) -> Table:
    """Return a table with one row for each table of a backup, and for the rest of it."""
    table = Table(title=f"Backup of {manifest.made_at}")
    table.add_column("what", no_wrap=True)
    for name in ("version", "rows", "files", "MB"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, one in manifest.tables.items():
        size = sum(file.size_bytes for file in one.files.values())
        table.add_row(name, str(one.version), f"{one.rows:,}", f"{len(one.files):,}", f"{size / 1e6:,.2f}")
    registry = manifest.registry
    size = sum(file.size_bytes for file in registry.artifacts.values())
    size += 0 if registry.database is None else registry.database.size_bytes
    versions = "-" if registry.database is None else f"{registry.model_versions:,}"
    table.add_row("models (MLflow)", "", versions, f"{len(registry.artifacts):,}", f"{size / 1e6:,.2f}")
    table.add_row("set by persons", "", f"{len(manifest.objects):,}", f"{len(manifest.objects):,}", "")
    return table


def run(options: argparse.Namespace, now_s: float) -> None:
    """Take a backup and show what is in it."""
    with hold_paths(options.out, "tidewise backup") as settings:
        require_writable(options.to, "--to")
        backup = open_folder(str(options.to), settings)
        manifest = take_backup(settings, backup, datetime.fromtimestamp(now_s, UTC), with_ingested=options.all)
        removed = 0 if options.retain is None else backup.remove_older(options.retain)
    open_console().print(contents_table(manifest))
    if manifest.registry.missing:
        print(f"backup: models are NOT in it: {manifest.registry.missing}")
    if removed:
        print(f"backup: {removed} files of older backups are removed")
    print(f"backup: {options.to}, {manifest.made_at}")


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--to", type=place, required=True, help="folder of backups, or s3://bucket/folder")
    parser.add_argument(
        "--all", action="store_true", help="also the tables that ingestion can make again from raw files"
    )
    parser.add_argument("--retain", type=whole_number(1), help="keep so many of the newest backups, remove the others")
    add_out(parser)


main = command("backup", __doc__, _add_arguments, run, errors=(BackupError, OSError))
