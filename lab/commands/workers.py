"""Worker processes of a command: they end with it, however it ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait


def end_with_parent() -> None:
    """Have this worker process end as soon as its parent has ended; the initializer of every pool.

    A worker waits for work on a pipe that the other workers hold open, too: alone it would never notice.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # not the parent's handler, which a fork inherits
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent as well, which ends its workers
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_for_end, args=(parent.sentinel,), daemon=True).start()


def _wait_for_end(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


@contextmanager
def stop_workers() -> Iterator[None]:
    """Stop all worker processes of this process when an error or a signal ends the block, whatever they are at.

    A pool of concurrent.futures would wait until they have finished.
    """
    try:
        yield
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
