"""Work in a thread while a block goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def running_beside(work: Callable[[], None], ended: threading.Event) -> Iterator[None]:
    """Run work in a thread until the end of the block; the event tells it to end, and is waited for."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
