"""Notes how long each part of a long test took, and shows it as it goes on."""

from __future__ import annotations

import time

from tools.markdown import format_table


class PartClock:
    """Parts that follow each other."""

    def __init__(self) -> None:
        self._began_s, self._rows = time.monotonic(), list[tuple[str, str]]()

    def note(self, part: str) -> None:
        """Note the end of a part."""
        now_s = time.monotonic()
        self._rows.append((part, f"{now_s - self._began_s:.0f}"))
        print(*self._rows[-1], flush=True)
        self._began_s = now_s

    def table(self) -> str:
        """Return all of them."""
        return format_table(["part", "seconds"], self._rows)
