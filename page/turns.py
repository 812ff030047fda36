"""The page works on one request at a time, so that the rest of its process goes on.

Within Airflow's API server the page has the threads and the processor in common with Airflow's own routes, among them
the heartbeats of tasks. Two requests of the page at once take the interpreter from those for longer than one after the
other does. A request waits for its turn without a thread, and is refused when that lasts: who were refused sooner
would only ask again sooner.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

PATIENCE_S, RETRY_AFTER_S = 3.0, 5


class BusyError(Exception):
    """There was no turn in time."""


@asynccontextmanager
async def take_turn(turns: asyncio.Semaphore) -> AsyncIterator[None]:
    """Have a turn inside the block.

    Raises:
        BusyError: there was none in time.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            await turns.acquire()
    except TimeoutError:
        raise BusyError from None
    try:
        yield
    finally:
        turns.release()
