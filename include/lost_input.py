"""Input that was there and is not any more: it is not taken for an empty one.

An hour that is ingested again is replaced by what its raw files say. Files that gave rows before and are gone (a folder
that is not mounted, ``retention.raw_days``, a worker without it) would replace those rows by nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from include.raw_files import RawFile
from include.utc import Interval, format_utc

_SHOWN = 3


class LostInputError(RuntimeError):
    """Rows would be replaced by nothing because their input is gone; the message says what to do."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A raw file from which rows of the lake come.

    Attributes:
        name: below the raw root.
        lines: that were read of it; None when only its rows are known.
        hour: of its directory; None when only its rows are known.
    """

    name: str
    lines: int | None = None
    hour: datetime | None = None


@dataclass(frozen=True, slots=True)
class InputFile:
    """What a run has read of a file.

    Attributes:
        lines: how many.
        detail: why it was not read to its end; empty when it was.
        is_unreadable: whether it could not be opened or read, rather than being damaged.
    """

    lines: int
    detail: str = ""
    is_unreadable: bool = False

    @property
    def is_elsewhere(self) -> bool:
        """Whether the file was listed, and is not there where it is read: a worker without the folder."""
        return self.is_unreadable and self.detail.startswith(FileNotFoundError.__name__)


def find_lost(
    known: Iterable[SourceFile], listed: Iterable[RawFile], read: Mapping[str, InputFile]
) -> dict[SourceFile, str]:
    """Return the files, of those that rows to be replaced come from, from which less comes now than before, and why.

    A file that was compressed since is the same file.
    """
    now = {_stem(file.name): file for file in listed if not file.is_misplaced}
    read_now = {_stem(name): result for name, result in read.items()}
    whys = {file: _why_lost(file, now.get(_stem(file.name)), read_now.get(_stem(file.name))) for file in known}
    return {file: why for file, why in whys.items() if why}


def _stem(name: str) -> str:
    return name.removesuffix(".gz")


def _why_lost(known: SourceFile, result: RawFile | None, read: InputFile | None) -> str:
    if result is None:
        return "is not among the files of the folders that are read"
    if result.fault is not None:
        return f"{result.fault[0]}: {result.fault[1]}"
    if read is None:
        return ""
    if read.is_unreadable:
        return f"cannot be read: {read.detail}"
    if known.lines is None or read.lines >= known.lines:
        return ""
    return f"{read.lines} of {known.lines} lines are left" + (f": {read.detail}" if read.detail else "")


def describe_lost(lost: Mapping[SourceFile, str], raw_root: str, replaced: Interval) -> str:
    """Return the message that refuses a run: which input is gone, and what to do."""
    ordered = sorted(lost.items(), key=lambda item: item[0].name)
    hours = sorted({file.hour for file in lost if file.hour is not None})
    span = f" (hours {format_utc(hours[0])} to {format_utc(hours[-1])})" if hours else ""
    shown = "; ".join(f"{file.name}: {why}" for file, why in ordered[:_SHOWN])
    more = f"; and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
    return (
        f"{len(lost)} raw files of which the lake has rows are gone or hold less{span}; nothing of "
        f"{format_utc(replaced.start)} to {format_utc(replaced.end)} was replaced. See that {raw_root} is mounted here "
        f"and on every worker, or leave these hours out; to keep only what the files that are left say, --force. "
        f"{shown}{more}"
    )
