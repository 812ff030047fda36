"""Blackout windows: the times that they cover, and those that cannot be."""

from datetime import UTC, datetime, timedelta

import pytest

from include.settings import SettingsError, check_settings
from models.control.blackout import BlackoutPeriod


def test_a_blackout_follows_the_wall_clock_of_its_zone() -> None:
    nights = BlackoutPeriod("0 22 * * *", 8 * 3600, "Europe/Berlin")
    summer = [datetime(2026, 7, 1, hour, 30, tzinfo=UTC) for hour in (19, 20, 3, 4)]
    assert [nights.covers(at) for at in summer] == [False, True, True, False]
    with pytest.raises(ValueError, match="is no cron expression"):
        BlackoutPeriod("hello", 60)
    with pytest.raises(ValueError, match="between 0 and a week"):
        BlackoutPeriod("0 22 * * *", 0)


@pytest.mark.covers("apply_review 20")
def test_a_blackout_lasts_the_longer_time_when_the_clocks_change() -> None:
    nights = BlackoutPeriod("0 22 * * *", 8 * 3600, "Europe/Berlin")
    back = [datetime(2026, 10, 25, hour, minute, tzinfo=UTC) for hour, minute in ((3, 59), (4, 59), (5, 1))]
    assert [nights.covers(at) for at in back] == [True, True, False]  # from 22:00 to 06:00 by the wall
    forward = [datetime(2026, 3, 29, hour, minute, tzinfo=UTC) for hour, minute in ((3, 59), (4, 59), (5, 1))]
    assert [nights.covers(at) for at in forward] == [True, True, False]  # eight hours
    repeated = BlackoutPeriod("30 2 * * *", 600, "Europe/Berlin")
    assert repeated.covers(datetime(2026, 10, 25, 1, 35, tzinfo=UTC))  # 02:35 for the second time
    with pytest.raises(ValueError, match="has no times"):
        BlackoutPeriod("0 0 31 2 *", 60)
    with pytest.raises(ValueError, match="has no times"):
        BlackoutPeriod("0 0 * * *", 60, "Mars/Olympus")


def covered(blackout: BlackoutPeriod, begin: datetime, hours: float) -> list[str]:
    """Return the times at which a blackout begins and ends, minute by minute."""
    result, was_on = [], blackout.covers(begin)
    for minute in range(1, round(60 * hours)):
        at = begin + timedelta(minutes=minute)
        if blackout.covers(at) != was_on:
            was_on = not was_on
            result.append(f"{'on' if was_on else 'off'} {at:%H:%M}Z")
    return result


@pytest.mark.parametrize(
    ("cron", "minutes", "zone", "begin", "expected"),
    [
        # 02:30 comes twice, at 00:30Z and 01:30Z: no hole between the two.
        ("30 2 * * *", 60, "Europe/Berlin", datetime(2026, 10, 25), ["on 00:30Z", "off 02:30Z"]),
        ("30 2 * * *", 600, "Europe/Berlin", datetime(2026, 10, 25), ["on 00:30Z", "off 11:30Z"]),
        ("50 2 * * *", 20, "Europe/Berlin", datetime(2026, 10, 25),
         ["on 00:50Z", "off 01:10Z", "on 01:50Z", "off 02:10Z"]),
        ("45 1 * * *", 30, "Australia/Lord_Howe", datetime(2026, 4, 4, 12), ["on 14:45Z", "off 15:45Z"]),
        # 02:30 does not come: the window begins as the clocks are set.
        ("30 2 * * *", 60, "Europe/Berlin", datetime(2026, 3, 29), ["on 01:00Z", "off 02:30Z"]),
        ("30 2 * * *", 10, "Europe/Berlin", datetime(2026, 3, 29), ["on 01:00Z", "off 01:40Z"]),
        ("30 2 * * *", 60, "Europe/Berlin", datetime(2026, 3, 30), ["on 00:30Z", "off 01:30Z"]),
    ],
)  # fmt: skip
@pytest.mark.covers("harm repeated-hour")
def test_a_blackout_has_no_hole_when_the_clocks_change(cron, minutes, zone, begin, expected) -> None:
    assert covered(BlackoutPeriod(cron, 60 * minutes, zone), begin.replace(tzinfo=UTC), 23) == expected


@pytest.mark.parametrize(
    "cron", ["R 8 * * *", "H 8 * * *", "r(0-5) 8 * * *", "0 h/2 * * *", "5,R 8 * * *", "0 8 * * * 0"]
)
@pytest.mark.covers("harm random-cron")
def test_a_time_that_is_made_up_anew_at_each_look_is_refused(cron: str) -> None:
    with pytest.raises(ValueError, match="no cron expression"):
        BlackoutPeriod(cron, 60)
    for values in (
        {"limits": {"blackouts": {"night": {"cron": cron, "duration_s": 60}}}},
        {"schedules": {"control": cron}},
    ):
        with pytest.raises(SettingsError, match=r"no fixed time|not five"):
            check_settings(values)
    BlackoutPeriod("0 8 * jan-Mar MON,thu", 60)
