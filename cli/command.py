"""What every command does alike: it reads its arguments, does its work, and says in one line why it could not."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence

from deltalake.exceptions import DeltaError

from cli.arguments import CONSOLE, EXIT_USAGE, CommandParser, UsageError
from cli.embedded import below
from fleet.acts.people import NotAllowedError
from include.control.small_objects import StoreUnreadableError
from include.object_store import local_folder
from include.place import place
from include.settings import PROJECT, Settings, SettingsError, load_settings
from include.short_names import visible
from include.spark.submission import anchor_paths

Run = Callable[[argparse.Namespace, float], int | None]


def command(
    name: str,
    doc: str | None,
    add: Callable[[CommandParser], object],
    run: Run,
    *,
    failed: str = "",
    errors: tuple[type[Exception], ...] = (),
    stopped: str = "",
    reads: bool = False,
) -> Callable[[Sequence[str]], int]:
    """Return ``main`` of a command: exit code 2 for what cannot be meant, 1 for what failed, 130 after Ctrl-C.

    Args:
        name: as it is typed.
        doc: of its module.
        add: adds its arguments.
        run: does its work by the options and epoch seconds; returns the exit code, none for 0.
        failed: stands before why it failed.
        errors: of its own, whose text says what to do.
        stopped: what to say after Ctrl-C; empty: nothing is said.
        reads: whether it reads tables, of which some may not be there yet.
    """
    expected: tuple[type[Exception], ...] = (StoreUnreadableError, NotAllowedError, *errors)

    def main(argv: Sequence[str]) -> int:
        """Run the command; returns the exit code."""
        parser = CommandParser(prog=f"{CONSOLE} {name}", description=doc)
        add(parser)
        options = parser.parse_args(argv)
        code = 1
        try:
            return run(options, time.time()) or 0
        except UsageError as error:
            code, why = EXIT_USAGE, visible(str(error))
        except SettingsError as error:
            why = f"{failed}{error}"
        except expected as error:
            why = f"{failed}{visible(str(error))}"
        except BrokenPipeError:
            return 0
        except (DeltaError, OSError) as error:
            if not reads:
                raise
            reported = str(error).partition("\n")[0] or type(error).__name__
            why = f"{failed}a table cannot be read: {visible(reported)} (tidewise doctor checks the lake)"
        except (KeyboardInterrupt, EOFError):
            if not stopped:
                raise
            code, why = 130, stopped
        print(f"{name}: {why}", file=sys.stderr)
        return code

    return main


def add_out(parser: CommandParser) -> None:
    """Add the option that names the folder of a run in place of what the settings name."""
    parser.add_argument("--out", type=place, help=f"folder of make run, such as {PROJECT / 'out'}; default: settings")


def add_person(parser: CommandParser) -> None:
    """Add the options of what a person does."""
    parser.add_argument("--reason", nargs="+", help="why, for others to read")
    parser.add_argument("--by", help="who; default: your login")
    add_out(parser)


def read_settings(options: argparse.Namespace) -> Settings:
    """Return the settings in force, with everything below ``--out`` where it is given.

    Raises:
        UsageError: ``--out`` names a folder that is not there, which would read as one in which nothing happened.
    """
    if options.out is not None:
        folder = local_folder(str(options.out))
        if folder is not None and not folder.is_dir():
            raise UsageError(f"there is no folder {folder}")
        os.environ.update(below(options.out))
    return anchor_paths(load_settings())
