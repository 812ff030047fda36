"""``python -m benchmarks.auto_weeks.jumping_clock URL ...``: the controller's process without the time between polls.

Its clocks stand still while it works. When its ticks and its polls both wait, they jump to where the harness, which is
asked at URL, lets them. Everything else is ``python -m controller``.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import urllib3

_LOOKS_AGAIN_S = 0.2  # of real time, for an event that somebody else sets
WAITERS = 2  # the thread of the ticks, and that of the polls


class JumpingClock:
    """A clock that stands still, but for jumps while all threads wait that go by it.

    Args:
        jump: takes a time, epoch seconds; returns what the time is then.
        waiters: number of those threads.

    Attributes:
        now_s: epoch seconds.
    """

    def __init__(self, jump: Callable[[float], float], waiters: int = WAITERS) -> None:
        self.now_s = jump(0.0)
        self._jump, self._waiters = jump, waiters
        self._changed = threading.Condition()
        self._until_s: dict[int, float] = {}

    def read(self) -> float:
        """Return epoch seconds."""
        return self.now_s

    def wait(self, is_set: Callable[[], bool], seconds: float) -> bool:
        """Wait until something is set or so much time has passed; returns whether it is set."""
        thread = threading.get_ident()
        with self._changed:
            self._until_s[thread] = self.now_s + seconds
            while not is_set() and self.now_s < self._until_s[thread]:
                waiting = [until_s for until_s in self._until_s.values() if until_s > self.now_s]
                if len(waiting) == self._waiters:
                    self.now_s = self._jump(min(waiting))
                    self._changed.notify_all()
                else:
                    self._changed.wait(_LOOKS_AGAIN_S)
            del self._until_s[thread]
        return is_set()


def ask_time(http: urllib3.PoolManager, url: str, until_s: float) -> float:
    """Ask the harness to let the time come; returns epoch seconds."""
    return float(http.request("POST", f"{url}/clock", body=repr(until_s), retries=False, timeout=None).data)


def main(argv: list[str]) -> int:
    """Run the controller; returns its exit code."""
    clock = JumpingClock(partial(ask_time, urllib3.PoolManager(), argv[0]))
    time.time = time.monotonic = clock.read  # before the controller's modules are loaded: some keep the functions

    class ClockedEvent(threading.Event):
        """What ticks and polls wait for."""

        def wait(self, timeout: float | None = None) -> bool:
            return super().wait() if timeout is None else clock.wait(self.is_set, timeout)

    from controller import command
    from include.metric_sources import collection

    clocked = SimpleNamespace(Event=ClockedEvent, Thread=threading.Thread)
    for module in (command, collection):
        vars(module)["threading"] = clocked
    return command.main(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
