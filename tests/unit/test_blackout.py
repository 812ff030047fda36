"""Blackout windows: the times that they cover, and those that cannot be."""

from datetime import UTC, datetime

import pytest

from models.control.blackout import Blackout


def test_a_blackout_follows_the_wall_clock_of_its_zone() -> None:
    nights = Blackout("0 22 * * *", 8 * 3600, "Europe/Berlin")
    summer = [datetime(2026, 7, 1, hour, 30, tzinfo=UTC) for hour in (19, 20, 3, 4)]
    assert [nights.covers(at) for at in summer] == [False, True, True, False]
    with pytest.raises(ValueError, match="is no cron expression"):
        Blackout("hello", 60)
    with pytest.raises(ValueError, match="between 0 and a week"):
        Blackout("0 22 * * *", 0)


@pytest.mark.covers("apply_review 20")
def test_a_blackout_lasts_the_longer_time_when_the_clocks_change() -> None:
    nights = Blackout("0 22 * * *", 8 * 3600, "Europe/Berlin")
    back = [datetime(2026, 10, 25, hour, minute, tzinfo=UTC) for hour, minute in ((3, 59), (4, 59), (5, 1))]
    assert [nights.covers(at) for at in back] == [True, True, False]  # from 22:00 to 06:00 by the wall
    forward = [datetime(2026, 3, 29, hour, minute, tzinfo=UTC) for hour, minute in ((3, 59), (4, 59), (5, 1))]
    assert [nights.covers(at) for at in forward] == [True, True, False]  # eight hours
    repeated = Blackout("30 2 * * *", 600, "Europe/Berlin")
    assert repeated.covers(datetime(2026, 10, 25, 1, 35, tzinfo=UTC))  # 02:35 for the second time
    with pytest.raises(ValueError, match="has no times"):
        Blackout("0 0 31 2 *", 60)
    with pytest.raises(ValueError, match="has no times"):
        Blackout("0 0 * * *", 60, "Mars/Olympus")
