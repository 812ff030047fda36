"""Progress of a command: which part is at work, of how many, what is left, and how long each part took."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.console import Console


@dataclass(slots=True)
class ProgressLog:
    """Lines of progress on a console.

    Attributes:
        console: where they are printed.
        parts: name of each part -> what it does, in the order in which they run.
        began_s: the monotonic clock when the command began.
        seconds: name of each part that has ended -> seconds that it took.
    """

    console: Console
    parts: Mapping[str, str]
    began_s: float = field(default_factory=time.monotonic)
    seconds: dict[str, float] = field(default_factory=dict)
    _part: str | None = None
    _part_began_s: float = 0.0

    def begin(self, part: str) -> None:
        """End the part at work and begin another; nothing happens when it has begun already, or is no part."""
        if part not in self.parts or part == self._part or part in self.seconds:
            return
        self.end()
        self._part, self._part_began_s = part, time.monotonic()
        names = list(self.parts)
        number = names.index(part) + 1
        remaining = f" (then {', '.join(names[number:])})" if number < len(names) else ""
        self.say(f"{number} of {len(names)}  {part}: {self.parts[part]}{remaining}")

    def end(self) -> None:
        """End the part at work, if any."""
        if self._part is not None:
            self.seconds[self._part] = round(time.monotonic() - self._part_began_s, 2)
            self._part = None

    def say(self, text: str) -> None:
        """Print a line with the seconds since the command began."""
        self.console.print(f"[dim]{time.monotonic() - self.began_s:6.1f} s[/]  {text}", highlight=False, soft_wrap=True)
