"""Lines on a terminal: a name within one can neither begin another line nor do anything to the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from include.short_names import visible


def print_lines(lines: Iterable[str], file: TextIO | None = None) -> None:
    """Print lines, each of letters that can be printed alone."""
    print("\n".join(map(visible, lines)), file=file)
