"""Terms of a cluster's lease: which follow each other, and what becomes of one that is taken, old or given back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.leases.lease import Lease, LeaseLostError, LeaseTerm
from controller.leases.lease_keeper import keep_renewed
from tests.unit.test_leases import EXPIRY_S, MARGIN_S, Clock, lease, objects

AHEAD_S = 10_000.0
"""By which a clock takes a lease that is in force."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


def ahead_of(clock: Clock) -> Callable[[], float]:
    return lambda: clock() + AHEAD_S


def test_a_holder_that_takes_its_lease_again_gets_the_next_term(tmp_path: Path, clock: Clock) -> None:
    one = lease(tmp_path, clock)
    assert [(one.take(), one.number) for _ in range(3)] == [(True, 1), (True, 2), (True, 3)]
    one.check()


def test_own_terms_that_follow_each_other_begin_with_the_first_of_them(tmp_path: Path, clock: Clock) -> None:
    """By its number a controller knows whether another one may have written in between."""
    one, two = lease(tmp_path, clock), lease(tmp_path, clock, "two")
    assert one.take()
    one.renew()
    assert one.take()
    assert (one.first_number, one.number) == (1, 3)
    one.release()
    assert two.take()
    assert (two.first_number, two.number) == (4, 4)
    two.release()
    assert one.take()
    assert (one.first_number, one.number) == (5, 5)


def test_a_renewal_whose_number_another_takes_at_this_moment_is_none(tmp_path: Path, clock: Clock) -> None:
    two, looks = lease(tmp_path, ahead_of(clock), "two"), list[float]()

    def watched_clock() -> float:
        """Let the other take the lease after this one was checked, and before its next term is written."""
        looks.append(clock())
        if len(looks) == 3:
            assert two.take()
        return clock()

    one = lease(tmp_path, watched_clock)
    assert one.take()
    with pytest.raises(LeaseLostError, match="another controller has taken the lease"):
        one.renew()
    assert len(looks) == 3
    two.check()
    with pytest.raises(LeaseLostError, match="does not hold"):
        one.check()


def test_a_controller_that_was_followed_gives_nothing_back(tmp_path: Path, clock: Clock) -> None:
    """Its own term was cleaned up long ago, and is not written once more."""
    one, two = lease(tmp_path, clock), lease(tmp_path, ahead_of(clock), "two")
    assert one.take()
    for _ in range(12):
        assert two.take()
    before = objects(tmp_path)
    one.release()
    assert objects(tmp_path) == before
    two.check()


def test_terms_that_are_cleaned_up_while_they_are_read_are_followed_by_newer_ones(tmp_path: Path, clock: Clock) -> None:
    holder, renewals = lease(tmp_path, clock), list[int]()
    assert holder.take()

    class Slow(Lease):
        """A reader that is so slow that the terms which it has listed are gone."""

        def _read_term(self, number: int) -> LeaseTerm:
            while len(renewals) < 12:
                holder.renew()
                renewals.append(holder.number)
            return super()._read_term(number)

    reader = Slow(str(tmp_path), "live", "two", clock, expiry_s=EXPIRY_S, margin_s=MARGIN_S)
    newest = reader.read_newest()
    assert newest is not None
    assert (newest.number, newest.owner) == (13, "one")
    assert not reader.take()


@pytest.mark.parametrize("name", ["README", ".DS_Store", "000000000009.json.tmp", "last.json"])
def test_what_else_lies_among_the_terms_is_none(tmp_path: Path, clock: Clock, name: str) -> None:
    one = lease(tmp_path, clock)
    assert one.take()
    (tmp_path / "ops" / "leases" / "cluster=live" / name).write_text("by hand")
    one.renew()
    assert one.number == 2
    assert not lease(tmp_path, clock, "two").take()


def test_a_lease_is_renewed_while_its_cluster_is_at_work(tmp_path: Path) -> None:
    renewed = threading.Event()

    class Noted(Lease):
        def renew(self) -> None:
            super().renew()
            renewed.set()

    one = Noted(str(tmp_path), "live", "one", time.time, expiry_s=0.3, margin_s=0.0)
    assert one.take()
    with keep_renewed(one):
        assert renewed.wait(20.0)
    assert one.number > 1
