"""The lease of a cluster: never two holders at once, whatever their clocks and whoever dies."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from itertools import pairwise

import pytest

from controller.leases.lease import Lease, LeaseLostError

EXPIRY_S, MARGIN_S = 60.0, 5.0


class Clock:
    def __init__(self, now_s: float = 1_000_000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lease(lake, clock, owner: str = "one", cluster: str = "live") -> Lease:
    return Lease(str(lake), cluster, owner, clock, expiry_s=EXPIRY_S, margin_s=MARGIN_S)


def objects(lake) -> list[str]:
    return sorted(path.name for path in (lake / "ops" / "leases" / "cluster=live").iterdir())


def test_one_alone_holds_it_until_its_end(tmp_path, clock) -> None:
    one, two = lease(tmp_path, clock), lease(tmp_path, clock, "two")
    assert one.take()
    assert not two.take()
    with pytest.raises(LeaseLostError, match="does not hold the lease"):
        two.check()
    clock.now_s += EXPIRY_S + MARGIN_S - 1
    assert not two.take()
    with pytest.raises(LeaseLostError, match="has ended"):
        one.check()
    clock.now_s += 1
    assert two.take()
    assert two.number == one.number + 1
    two.check()
    with pytest.raises(LeaseLostError):
        one.renew()


def test_a_request_leaves_within_the_term_by_either_clock(tmp_path, clock) -> None:
    """A machine that sleeps stops the one, and somebody may set the other back."""
    running = Clock(0.0)
    one = Lease(str(tmp_path), "live", "one", clock, expiry_s=EXPIRY_S, margin_s=MARGIN_S, monotonic=running)
    assert not one.may_send()
    assert one.take()
    one.check()
    assert one.may_send()
    running.now_s += EXPIRY_S + 1
    assert not one.may_send()
    running.now_s = 0.0
    assert one.may_send()
    clock.now_s += EXPIRY_S + 1
    assert not one.may_send()


def test_an_end_that_a_clock_far_ahead_has_written_is_not_waited_for(tmp_path, clock) -> None:
    wrong, running = Clock(clock.now_s + 7200.0), Clock(0.0)
    killed = lease(tmp_path, wrong)
    assert killed.take()
    two = Lease(str(tmp_path), "live", "two", clock, expiry_s=2 * MARGIN_S + 1, margin_s=MARGIN_S, monotonic=running)
    assert not two.take()
    running.now_s += EXPIRY_S + 2 * MARGIN_S - 1  # the length of the other's term, not of the own ones
    assert not two.take()
    running.now_s += 1
    assert two.take()
    with pytest.raises(LeaseLostError, match="followed by 2"):
        killed.check()


def test_a_term_that_is_renewed_is_watched_anew(tmp_path, clock) -> None:
    wrong, running = Clock(clock.now_s + 7200.0), Clock(0.0)
    holder = lease(tmp_path, wrong)
    assert holder.take()
    two = Lease(str(tmp_path), "live", "two", clock, expiry_s=EXPIRY_S, margin_s=MARGIN_S, monotonic=running)
    for _ in range(10):
        assert not two.take()
        running.now_s += EXPIRY_S - MARGIN_S
        holder.renew()


def test_every_renewal_has_a_higher_number_and_old_ones_are_cleaned_up(tmp_path, clock) -> None:
    one = lease(tmp_path, clock)
    assert one.take()
    numbers = [one.number]
    for _ in range(30):
        clock.now_s += 20
        one.renew()
        numbers.append(one.number)
    assert numbers == list(range(1, 32))
    assert objects(tmp_path)[-1] == "000000000031.json"
    assert len(objects(tmp_path)) <= 9
    assert one.read_newest().owner == "one"


def test_a_lease_that_is_given_back_can_be_taken_at_once(tmp_path, clock) -> None:
    one, two = lease(tmp_path, clock), lease(tmp_path, clock, "two")
    assert one.take()
    one.release()
    with pytest.raises(LeaseLostError):
        one.check()
    assert two.take()
    one.release()
    two.check()


def test_a_holder_that_was_followed_notices_it_by_the_number_whatever_its_clock_says(tmp_path, clock) -> None:
    ahead = Clock(clock.now_s + 10_000)
    one, two = lease(tmp_path, clock), lease(tmp_path, ahead, "two")
    assert one.take()
    assert two.take()  # a clock that is hours ahead takes a lease that is in force
    with pytest.raises(LeaseLostError, match="followed by 2"):
        one.check()
    two.check()


@pytest.mark.parametrize("skew_s", [-2 * MARGIN_S, -MARGIN_S, 0.0, MARGIN_S, 2 * MARGIN_S])
def test_clocks_may_differ_by_twice_the_margin(tmp_path, skew_s: float) -> None:
    """The holder stops to send before the other may take over, second by second."""
    clock = Clock()
    one = lease(tmp_path, clock)
    two = Lease(str(tmp_path), "live", "two", lambda: clock.now_s + skew_s, expiry_s=EXPIRY_S, margin_s=MARGIN_S)
    assert one.take()
    ends_s = one.read_newest().until_s - MARGIN_S
    while not two.take():
        clock.now_s += 1
    assert clock.now_s >= ends_s


def test_a_controller_that_slept_cannot_take_a_number_that_was_cleaned_up(tmp_path, clock) -> None:
    one, two = lease(tmp_path, clock), lease(tmp_path, clock, "two")
    assert one.take()
    one.release()
    newest = two.read_newest()
    assert one.take()
    for _ in range(20):
        clock.now_s += 20
        one.renew()
    two.read_newest = lambda: newest  # what it read before it slept
    assert not two.take()
    one.check()


def test_a_term_that_cannot_be_read_is_in_force_for_as_long_as_it_may_be(tmp_path, clock) -> None:
    clock.now_s = time.time()
    one, two = lease(tmp_path, clock), lease(tmp_path, clock, "two")
    assert one.take()
    (path,) = (tmp_path / "ops" / "leases" / "cluster=live").iterdir()
    path.write_text("{")
    assert not two.take()
    clock.now_s += EXPIRY_S + 2 * MARGIN_S
    assert two.take()


def test_clusters_have_leases_of_their_own_whatever_their_names(tmp_path, clock) -> None:
    names = ["live", "a/b", "../up", "ü x"]
    held = [lease(tmp_path, clock, cluster=name) for name in names]
    assert [one.take() for one in held] == [True] * 4
    assert [one.number for one in held] == [1] * 4
    assert len(list((tmp_path / "ops" / "leases").iterdir())) == 4


def test_a_margin_that_leaves_no_time_is_refused(tmp_path, clock) -> None:
    with pytest.raises(ValueError, match="cannot have a margin"):
        Lease(str(tmp_path), "live", "one", clock, expiry_s=10.0, margin_s=5.0)


# two processes


def _race(lake: str, owner: str, rounds: int, record: str, barrier) -> None:
    """Take, hold, note begin and end of what was done under the lease, give back; again and again."""
    mine = Lease(lake, "live", owner, time.time, expiry_s=EXPIRY_S, margin_s=MARGIN_S)
    barrier.wait()
    done = 0
    with open(record, "a", buffering=1) as file:  # noqa: PTH123 - one line a write
        while done < rounds:
            if not mine.take():
                continue
            mine.check()
            began = time.monotonic_ns()
            mine.check()
            time.sleep(0.001)
            file.write(json.dumps([owner, mine.number, began, time.monotonic_ns()]) + "\n")
            mine.release()
            done += 1


def test_two_processes_never_hold_it_at_once(tmp_path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, record = context.Barrier(2), tmp_path / "record"
    record.touch()
    racers = [
        context.Process(target=_race, args=(str(tmp_path / "lake"), owner, 50, str(record), barrier))
        for owner in ("one", "two")
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(120)
    assert [racer.exitcode for racer in racers] == [0, 0]
    held = sorted((json.loads(line) for line in record.read_text().splitlines()), key=lambda one: one[2])
    assert len(held) == 100
    assert len({number for _, number, _, _ in held}) == 100
    for (_, number, _, ended), (_, later, began, _) in pairwise(held):
        assert ended <= began, "two holders at once"
        assert number < later


def _die_with_it(lake: str, expiry_s: float) -> None:
    mine = Lease(lake, "live", "dies", time.time, expiry_s=expiry_s, margin_s=0.1)
    assert mine.take()
    os._exit(9)


def test_after_a_holder_was_killed_another_takes_over_when_its_term_has_ended(tmp_path) -> None:
    context = multiprocessing.get_context("spawn")
    dies = context.Process(target=_die_with_it, args=(str(tmp_path), 1.5))
    dies.start()
    dies.join(60)
    assert dies.exitcode == 9
    other = Lease(str(tmp_path), "live", "other", time.time, expiry_s=60.0, margin_s=0.1)
    ends_s = other.read_newest().until_s
    while not other.take():
        time.sleep(0.05)
    assert time.time() >= ends_s
    other.check()
    assert other.number == 2
