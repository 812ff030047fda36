"""Progress of a command: which part is at work, of how many, what is left, and how long each part took."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console

from include.threads import running_beside

SILENT_S = 15.0
"""A part at work says so after so long without a line, s."""


@dataclass(slots=True)
class ProgressLog:
    """Lines of progress on a console.

    Attributes:
        parts: name of each part -> what it does, in the order in which they run.
        began_s: the monotonic clock when the command began.
        seconds: name of each part that has ended -> seconds that it took.
        silent_s: longest time without a line within :meth:`never_silent`.
    """

    console: Console
    parts: Mapping[str, str]
    began_s: float = field(default_factory=time.monotonic)
    seconds: dict[str, float] = field(default_factory=dict)
    silent_s: float = SILENT_S
    _part: str | None = None
    _part_began_s: float = 0.0
    _shown_s: float = field(default_factory=time.monotonic)

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

    @contextmanager
    def never_silent(self) -> Iterator[None]:
        """Say which part is at work, and for how long, whenever the block has printed nothing for a while.

        It takes a thread: the block forks no process that goes on in Python.
        """
        ended = threading.Event()

        def say_still() -> None:
            while not ended.wait(min(1.0, self.silent_s)):
                if (part := self._part) is not None and time.monotonic() - self._shown_s >= self.silent_s:
                    self.say(f"        {part}: still at work, {time.monotonic() - self._part_began_s:.0f} s so far")

        with running_beside(say_still, ended):
            yield

    def say(self, text: str) -> None:
        """Print a line with the seconds since the command began."""
        self._shown_s = time.monotonic()
        self.console.print(f"[dim]{time.monotonic() - self.began_s:6.1f} s[/]  {text}", highlight=False, soft_wrap=True)
