"""Lines on a terminal: a name within one can neither begin another line nor do anything to the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TextIO

from include.short_names import visible

_PICTURE = re.compile(r"!\[(.*?)\]\(.*?\)")


def plain_note(note: str) -> list[str]:
    """Return the lines of a run's description, which is Markdown, as a terminal shows them: pictures by their files."""
    return _PICTURE.sub(r"\1, among the run's artifacts in MLflow", note).replace("**", "").splitlines()


def print_lines(lines: Iterable[str], file: TextIO | None = None) -> None:
    """Print lines, each of letters that can be printed alone."""
    print("\n".join(map(visible, lines)), file=file)
