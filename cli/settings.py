"""``tidewise settings``: whether a settings file can be used, and what a file of an earlier release is today."""

from __future__ import annotations

import argparse
import difflib
import tomllib
from pathlib import Path

from cli.arguments import CommandParser, UsageError
from cli.command import command
from cli.init import write_file
from cli.printing import print_lines
from include.settings import SettingsError, check_settings, settings_file
from include.settings.migration import migrate


def run(options: argparse.Namespace, _: float) -> int:
    """Show what would change, or write it; returns 1 while keys are left that cannot be used."""
    path = options.file or settings_file()
    try:
        before = after = path.read_text(encoding="utf-8")
        if options.migrate:
            made = migrate(before)
            after = made.text if made.notes else before
            names = (str(path), f"{path} as it would be")
            diff = difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
            print_lines([*made.notes] if options.write else diff)
        values = tomllib.loads(after)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if options.write and after != before:
        write_file(path, after)
        print_lines([f"{path} written (as it was: {path.name}.before)"])
    elif options.migrate:
        print_lines(["nothing to migrate" if after == before else "nothing was written (--write does it)"])
    try:
        check_settings(values)
    except SettingsError as error:
        print_lines(error.faults or [str(error)])
        return 1
    print_lines([f"{path}: every key can be used"])
    return 0


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--migrate", action="store_true", help="show what a file of an earlier release is today")
    parser.add_argument("--write", action="store_true", help="with --migrate: write it; the file is kept beside")
    parser.add_argument("--file", type=Path, help="file to read; default: the one in force")


main = command("settings", __doc__, _add_arguments, run)
