"""``make maintain``: what old rows, small files and unneeded files there are; ``--apply`` removes and merges them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from cli.arguments import EXIT_USAGE, CommandParser, UsageError, moment
from cli.out_lock import hold_paths
from cli.run_table import WIDTH
from include.maintenance.lake_upkeep import LakeUpkeep, keep_up_lake
from include.place import place
from include.settings import SettingsError


def upkeep_table(result: LakeUpkeep, *, applies: bool) -> Table:
    """Return a table with one row for each table of the lake."""
    table = Table(title="Upkeep" if applies else "Upkeep (nothing is changed; ARGS=--apply does it)")
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


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="maintain", description=__doc__)
    parser.add_argument("--apply", action="store_true", help="change the tables; else only what would be done is shown")
    parser.add_argument("--as-of", type=moment, help="count days from this time; default: now")
    parser.add_argument("--out", type=place, help="the directory of a `make run`; default: what the settings name")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Show or do the upkeep; returns the exit code."""
    try:
        options = _parse(argv)
        with hold_paths(options.out, "make maintain") as settings:
            now = options.as_of or datetime.now(UTC)
            result = keep_up_lake(settings, now, applies=options.apply)
    except UsageError as error:
        print(f"maintain: {error}", file=sys.stderr)
        return EXIT_USAGE
    except SettingsError as error:
        print(f"maintain: {error}", file=sys.stderr)
        return 1
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    console.print(upkeep_table(result, applies=options.apply))
    for folder in result.raw_days:
        console.print(f"raw files: {folder}", soft_wrap=True, highlight=False, markup=False)
    for folder, why in result.kept_days.items():
        console.print(f"raw files that stay: {folder}: {why}", soft_wrap=True, highlight=False, markup=False)
    for table, why in result.failures.items():
        print(f"maintain: {table}: {why}; run it again", file=sys.stderr)
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
