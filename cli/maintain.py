"""``tidewise maintain``: old rows, small files and unneeded files of tables; ``--apply`` removes and merges them."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from rich.table import Table

from cli.arguments import CommandParser, moment
from cli.command import add_out, command
from cli.out_lock import hold_paths
from cli.run_table import open_console
from include.maintenance.lake_upkeep import LakeMaintenance, keep_up_lake


def upkeep_table(result: LakeMaintenance, *, applies: bool) -> Table:
    """Return a table with one row for each table of the lake."""
    table = Table(title="Upkeep" if applies else "Upkeep (nothing is changed; --apply does it)")
    table.add_column("table", no_wrap=True)
    for name in ("files", "MB", "kept from", "old files", "old MB", "merged files", "removed files"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in result.tables:
        table.add_row(
            one.table,
            f"{one.files:,}",
            f"{one.size_bytes / 1e6:,.1f}",
            str(one.old_before or "all"),
            f"{one.old_files:,}",
            f"{one.old_bytes / 1e6:,.1f}",
            f"{one.merged_files:,}",
            f"{one.removed_files:,}",
        )
    return table


def run(options: argparse.Namespace, now_s: float) -> int:
    """Show or do the upkeep; returns the exit code."""
    with hold_paths(options.out, "tidewise maintain") as settings:
        result = keep_up_lake(settings, options.as_of or datetime.fromtimestamp(now_s, UTC), applies=options.apply)
    console = open_console()
    console.print(upkeep_table(result, applies=options.apply))
    for folder in result.raw_days:
        console.print(f"raw files: {folder}", soft_wrap=True, highlight=False, markup=False)
    for folder, why in result.kept_days.items():
        console.print(f"raw files that stay: {folder}: {why}", soft_wrap=True, highlight=False, markup=False)
    for table, why in result.failures.items():
        print(f"maintain: {table}: {why}; run it again", file=sys.stderr)
    return 1 if result.failures else 0


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--apply", action="store_true", help="change the tables; else only what would be done is shown")
    parser.add_argument("--as-of", type=moment, help="count days from this time; default: now")
    add_out(parser)


main = command("maintain", __doc__, _add_arguments, run)
