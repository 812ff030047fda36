"""Keeps a lease while a cluster is at work for longer than a term lasts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from controller.leases.lease import Lease, LeaseLostError

log = logging.getLogger(__name__)
_TERMS = 3  # a term is renewed so often before it would end
_LEAVES_S = 30.0  # how long a renewal at work is waited for at the end


@contextmanager
def keep_renewed(lease: Lease) -> Iterator[None]:
    """Renew a lease beside the block, until it ends or another controller has the lease.

    What the block sends goes by its own checks: a renewal makes no request later than the last check allows.
    """
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(lease.expiry_s / _TERMS):
            try:
                lease.renew()
            except LeaseLostError as error:
                log.warning("%s", error)
                return
            except Exception:  # the store may answer the next time
                log.exception("the lease was not renewed")

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_LEAVES_S)
