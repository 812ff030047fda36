"""Arguments of the commands: one line says what is wrong and what is expected, and the exit code is 2."""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from calendar import month_name, monthrange
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn
from uuid import uuid4

from include.atomic_write import temporary_beside
from include.place import is_object
from include.utc import IntervalError, find_last, parse_utc

EXIT_USAGE = 2
CONSOLE = "tidewise"
"""Name of the program that has all commands."""
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
EXAMPLE = "2026-11-20T18:00:00Z"


class UsageError(ValueError):
    """A command was asked for something that cannot be; the message says what is expected."""


class CommandParser(argparse.ArgumentParser):
    """A parser whose complaint is one line; the usage is shown by ``--help`` alone."""

    def error(self, message: str) -> NoReturn:
        """Print the complaint and exit with 2."""
        print(
            f"{self.prog.removeprefix(f'{CONSOLE} ')}: {' '.join(message.split())} (--help lists the options)",
            file=sys.stderr,
        )
        sys.exit(EXIT_USAGE)


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number in a range, both ends included."""
    wanted = f"a whole number of {least} or more" if most is None else f"a whole number from {least} to {most}"

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"expected {wanted}, not {text!r}")
        return value

    return read


def number(least: float, most: float, *, above: bool = False) -> Callable[[str], float]:
    """Return the type of an argument that is a number in a range, both ends included; ``above``: without the lower."""
    wanted = f"a number {'above' if above else 'from'} {least:g} {'and up ' if above else ''}to {most:g}"

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most or (above and value == least):
            raise argparse.ArgumentTypeError(f"expected {wanted}, not {text!r}")
        return value

    return read


def moment(text: str) -> datetime:
    """Read an argument that is a time in ISO 8601, UTC unless it says otherwise, or one of the clock: the last such."""
    if (last := find_last(text, datetime.fromtimestamp(time.time(), UTC))) is not None:
        return last
    try:
        result = parse_utc(text)
    except (IntervalError, OverflowError):
        result = None
        _check_day(text)
    if result is None or not EARLIEST <= result < LATEST:
        raise argparse.ArgumentTypeError(
            f"expected a time such as {EXAMPLE} (ISO 8601, years {EARLIEST.year} to {LATEST.year - 1}), "
            f"or 03:00 (0:00 to 23:59) for the last one, not {text!r}"
        )
    return result


def _check_day(text: str) -> None:
    """Say of a date that does not exist how long its month is."""
    if (parts := re.match(r"(\d{4})-(\d\d)-(\d\d)(?!\d)", text.strip())) is None:
        return
    year, month, day = map(int, parts.groups())
    if not 1 <= month <= 12:
        raise argparse.ArgumentTypeError(f"there is no month {month}: {text!r}")
    if year and not 1 <= day <= (days := monthrange(year, month)[1]):
        raise argparse.ArgumentTypeError(f"{month_name[month]} {year} has {days} days: {text!r}")


def folder(text: str) -> Path:
    """Read an argument that is a folder which is there."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"expected a folder that is there, not {text!r}")
    return Path(text)


def require_writable(target: Path, option: str = "--out") -> Path:
    """Make a folder unless it is there, and return it.

    Raises:
        UsageError: nothing can be written there.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
        if is_object(target):
            name = target / f".write_test-{uuid4().hex}"
            name.write_bytes(b"")
            name.unlink()
            return target
        with temporary_beside(target / "write_test") as temporary:
            temporary.touch()
    except OSError as error:
        why = "it is a file" if target.is_file() else error.strerror or type(error).__name__
        raise UsageError(f"argument {option}: expected a folder to write to, not '{target}': {why}") from error
    return target


def require_writable_file(target: Path, option: str) -> Path:
    """Make the folder of a file unless it is there, and return the file's path.

    Raises:
        UsageError: the file cannot be written.
    """
    if target.is_dir():
        raise UsageError(f"argument {option}: expected a file to write, not '{target}': it is a folder")
    require_writable(target.parent, option)
    return target
