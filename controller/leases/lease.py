"""The lease of a cluster: one controller at a time may write, and every term of it has a higher number.

The terms are numbered objects below ``<lake>/ops/leases/cluster=<name>/``. Each is created on the condition that it is
not there (a conditional put, which local disks and the object stores of AWS, Google and Azure have), so of any number
of controllers one alone gets the next number. To renew is to take the next number before the present term ends.

A holder gives up ``margin_s`` before its term ends by its own clock, and nobody takes over until ``margin_s`` after its
end by theirs: clocks may differ by twice the margin. A clock that differs by more is noticed by the number. An end that
a clock far ahead has written is not waited for: a term that was watched for its whole length without a next one, by a
clock that nobody sets, has ended.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import obstore
from obstore.exceptions import AlreadyExistsError

from include.object_store import open_store

EXPIRY_S, MARGIN_S = 180.0, 10.0
SEND_WITHIN_S = 15.0
"""After a check a request has so long to leave; a process that was stopped for longer has to check again."""
_RETAINED = 8  # terms that are not cleaned up


class LeaseLostError(Exception):
    """Another controller holds the cluster's lease: this one sends nothing."""


@dataclass(frozen=True, slots=True)
class LeaseTerm:
    """One term of a cluster's lease.

    Attributes:
        number: higher than of all terms before.
        until_s: its end by the owner's clock, epoch seconds; zero when it was given back.
    """

    number: int
    owner: str
    until_s: float
    length_s: float = EXPIRY_S


class Lease:
    """A controller's part in the lease of a cluster; one thread may renew it while another goes by it.

    ``owner`` is unlike that of any other controller. A term lasts ``expiry_s``: renew it well before. ``clock`` gives
    epoch seconds, ``monotonic`` those of a clock that is never set; ``margin_s``: see the module.
    """

    def __init__(
        self,
        lake: str,
        cluster: str,
        owner: str,
        clock: Callable[[], float],
        *,
        expiry_s: float = EXPIRY_S,
        margin_s: float = MARGIN_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 0 <= 2 * margin_s < expiry_s:
            raise ValueError(f"a lease of {expiry_s:g} s cannot have a margin of {margin_s:g} s")
        self._store = open_store(lake)
        self._folder = f"ops/leases/cluster={quote(cluster, safe='')}"
        self._cluster, self._owner, self._clock = cluster, owner, clock
        self._expiry_s, self._margin_s = expiry_s, margin_s
        self._monotonic = monotonic
        self._own: LeaseTerm | None = None
        self._own_since_s = 0.0  # by the monotonic clock
        self._send_within: tuple[float, float, float] | None = None
        self._lock = threading.RLock()
        self._first_number = 0
        self._watched: tuple[LeaseTerm, float] | None = None  # another's term, and since when it is seen as the newest

    @property
    def expiry_s(self) -> float:
        """Length of a term."""
        return self._expiry_s

    @property
    def first_number(self) -> int:
        """Number of the first of the own terms that followed each other: nobody else held the lease since then."""
        return self._first_number

    @property
    def number(self) -> int:
        """Number of the own term, which goes into every row that is written under it.

        Raises:
            LeaseLostError: there is none.
        """
        if self._own is None:
            raise LeaseLostError(f"{self._cluster}: this controller does not hold the lease")
        return self._own.number

    def take(self) -> bool:
        """Take the lease, or its next term where it is held already; returns whether it is held now."""
        with self._lock:
            return self._take()

    def _take(self) -> bool:
        newest = self.read_newest()
        if newest is not None and newest != self._own and not self._has_ended(newest):
            self._own = None
            return False
        number = 1 if newest is None else newest.number + 1
        if newest is None or newest != self._own:
            self._first_number = number
        return self._take_number(number)

    def renew(self) -> None:
        """Take the next term.

        Raises:
            LeaseLostError: another controller has taken the lease, or may have.
        """
        self.skip_to(self.number + 1)

    def skip_to(self, number: int) -> None:
        """Take a term with a number, the next one or a later one.

        Raises:
            LeaseLostError: another controller has taken the lease, or may have.
        """
        with self._lock:
            self._check()  # it makes no request later than the last check of its sender allows
            is_taken = self._take_number(number)
        if not is_taken:
            raise LeaseLostError(f"{self._cluster}: another controller has taken the lease")

    def check(self) -> None:
        """Make sure that this controller holds the lease now.

        Raises:
            LeaseLostError: it does not, or its term is about to end.
        """
        with self._lock:
            self._send_within = self._check()

    def may_send(self) -> bool:
        """Whether a request may still leave: so shortly after the last check that its answer holds."""
        allowed = self._send_within
        if allowed is None or self._own is None:
            return False
        since_s, until_s, until_monotonic_s = allowed
        # Both clocks: a machine that sleeps stops the one, and somebody may set the other.
        return since_s - self._margin_s <= self._clock() < until_s and self._monotonic() < until_monotonic_s

    def _check(self) -> tuple[float, float, float]:
        """Return the time now, and until when by either clock a request may leave."""
        number, own = self.number, self._own
        now_s, monotonic_s = self._clock(), self._monotonic()
        lasted_s = monotonic_s - self._own_since_s
        if own is None or now_s >= own.until_s - self._margin_s or lasted_s >= own.length_s - self._margin_s:
            self._send_within = None
            raise LeaseLostError(f"{self._cluster}: term {number} of the lease has ended")
        newest = max(self._read_numbers(), default=0)
        if newest != number:
            self._own = None
            raise LeaseLostError(f"{self._cluster}: term {number} of the lease is followed by {newest}")
        remaining_s = min(own.until_s - now_s, own.length_s - lasted_s) - self._margin_s
        within_s = min(SEND_WITHIN_S, remaining_s)
        return now_s, now_s + within_s, monotonic_s + within_s

    def release(self) -> None:
        """Give the lease back, so that another controller need not wait for its end; nothing happens without it."""
        with self._lock:
            own, self._own = self._own, None
        if own is not None and max(self._read_numbers(), default=0) == own.number:
            self._put(LeaseTerm(own.number, own.owner, 0.0, own.length_s), mode="overwrite")

    def read_newest(self) -> LeaseTerm | None:
        """Return the newest term, whoever has it; None where nobody ever had the lease."""
        numbers = self._read_numbers()
        for number in sorted(numbers, reverse=True):
            with suppress(FileNotFoundError):  # cleaned up since it was listed: there are newer ones
                return self._read_term(number)
        return self.read_newest() if numbers else None

    def _has_ended(self, term: LeaseTerm) -> bool:
        """Whether nobody may hold another's term any more."""
        now_s = self._monotonic()
        if self._watched is None or self._watched[0] != term:
            self._watched = term, now_s
        has_lasted = now_s - self._watched[1] >= term.length_s + 2 * self._margin_s
        return has_lasted or self._clock() >= term.until_s + self._margin_s

    def _take_number(self, number: int) -> bool:
        since_s = self._monotonic()
        term = LeaseTerm(number, self._owner, self._clock() + self._expiry_s, self._expiry_s)
        try:
            self._put(term, mode="create")
        except AlreadyExistsError:
            # The answer to the own request may have been lost: the client has then asked once more, and met itself.
            if not self._is_there(term):
                self._own = None
                return False
        numbers = self._read_numbers()
        # A controller that slept while its number was taken, followed and cleaned up could create it once more.
        self._own = term if max(numbers, default=0) == number else None
        self._own_since_s = since_s
        for old in numbers:
            if old <= number - _RETAINED:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, self._path(old))
        return self._own is not None

    def _is_there(self, term: LeaseTerm) -> bool:
        with suppress(FileNotFoundError):
            return self._read_term(term.number) == term
        return False

    def _put(self, term: LeaseTerm, mode: Any) -> None:
        text = json.dumps({"owner": term.owner, "until_s": term.until_s, "length_s": term.length_s})
        obstore.put(self._store, self._path(term.number), text.encode(), mode=mode)

    def _read_term(self, number: int) -> LeaseTerm:
        """Return a term; one that cannot be read ends as late as any that was written then."""
        result = obstore.get(self._store, self._path(number))
        try:
            content = json.loads(bytes(result.bytes()))
            length_s = float(content.get("length_s", EXPIRY_S))  # earlier releases did not write it
            return LeaseTerm(number, str(content["owner"]), float(content["until_s"]), length_s)
        except (ValueError, KeyError, TypeError, AttributeError):
            written_s = result.meta["last_modified"].timestamp()
            return LeaseTerm(number, "unknown", written_s + self._expiry_s)

    def _read_numbers(self) -> list[int]:
        listed = obstore.list(self._store, self._folder).collect()
        names = (one["path"].rsplit("/", 1)[-1].removesuffix(".json") for one in listed)
        return [int(name) for name in names if name.isdigit()]

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:012}.json"
