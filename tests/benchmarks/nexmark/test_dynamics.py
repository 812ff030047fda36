"""What is made of a run's records: errors of the age, and when a right wish came, ran, and the job caught up."""

from __future__ import annotations

import math

import pytest

from benchmarks.nexmark.dynamics.measures import judge_events
from benchmarks.nexmark.dynamics.schedule import HIGH, LOW, Event, Kind, make_schedule, make_trace
from benchmarks.nexmark.dynamics.series import Series, Window
from benchmarks.nexmark.dynamics.tables import print_tables
from benchmarks.nexmark.dynamics.verdicts import list_shortfalls

RISE = Event(Kind.STEEP_RISE, 300, 900)


def records() -> Series:
    """A rise at 300 s: the age grows to 100 s, two slots are wanted after 90 s, run after 150, and it falls after."""
    series = Series()
    for at_s in range(0, 900, 5):
        age_s = 2.0 if at_s < 300 else min(at_s - 300, 100.0) if at_s < 480 else max(2.0, 100.0 - (at_s - 480))
        series.ages.append((float(at_s), age_s))
        series.states.append((float(at_s), 1 if at_s < 450 else 2, 1 if at_s < 390 else 2, not 440 <= at_s < 450))
    series.windows = [
        Window(360.0, 50.0, 5.0, None, disturbed=False),  # 60 s are true
        Window(420.0, 90.0, 20.0, None, disturbed=False),  # 100 s
        Window(480.0, 80.0, None, None, disturbed=True),  # 100 s, soon after a restart
    ]
    return series


def test_errors_are_of_old_records_without_a_restart_and_of_all() -> None:
    (outcome,) = judge_events(records(), [RISE])
    assert outcome.windows == (2, 3)
    assert outcome.error_s == pytest.approx(10.0, abs=1.0)
    assert outcome.formula_s == pytest.approx(67.5, abs=1.0)
    assert outcome.error_in_all_s > outcome.error_s
    assert outcome.largest_age_s == 100.0


def test_times_go_by_what_flink_was_asked_for_where_no_log_tells() -> None:
    (outcome,) = judge_events(records(), [RISE])
    assert outcome.wish_minutes == pytest.approx(1.5)
    assert outcome.running_minutes == pytest.approx(2.5)
    assert outcome.caught_up_minutes == pytest.approx((480 + 90 + 10 - 300) / 60)
    assert (outcome.wishes, outcome.taken_back, outcome.smaller_while_behind) == (1, 0, 0)


def test_wishes_of_a_log_count_once_each_and_fewer_slots_while_it_is_behind_are_seen() -> None:
    series = records()
    series.wishes = [
        (330.0, 2, 1, "wait", "as_desired"),
        (345.0, 2, 1, "rescale", "plan"),
        (420.0, 1, 2, "roll_back", "worse_than_before"),
    ]
    (outcome,) = judge_events(series, [RISE])
    assert outcome.wish_minutes == pytest.approx(0.5)
    assert (outcome.wishes, outcome.taken_back, outcome.smaller_while_behind) == (2, 1, 1)


def test_what_did_not_happen_is_not_a_number_and_no_figure_in_the_table() -> None:
    quiet = Series(ages=[(float(at_s), 12.0) for at_s in range(0, 900, 5)])
    (outcome,) = judge_events(quiet, [RISE])
    assert math.isnan(outcome.wish_minutes)
    assert math.isnan(outcome.caught_up_minutes)
    written = Series.from_json(quiet.to_json())
    assert written == quiet
    table = print_tables(
        [
            {
                "minutes": 5,
                "checkpoint_every_s": 60,
                "cpu_share": 0.3,
                "outcomes": {"tidewise": {"q2": [outcome.to_json()]}},
            }
        ]
    )
    assert "| q2 | steep rise | tidewise | 1 | 12 | - | - | - | 0 |" in table


def test_the_load_rises_and_falls_at_the_events() -> None:
    schedule = make_schedule(40.0)
    trace = make_trace(schedule, 100.0, 60)
    steep, fall, slow = schedule[0], schedule[1], schedule[2]
    points = dict(trace)
    assert points[0] == points[60 + steep.begins_s - 1] == 100 * LOW
    assert points[60 + steep.begins_s] == points[60 + fall.begins_s - 1] == 100 * HIGH
    assert points[60 + (slow.begins_s + slow.ends_s) // 2] == 100 * HIGH
    assert [second for second, _ in trace] == sorted(points)


def run_of(**changes: object) -> dict[str, object]:
    row = dict.fromkeys(("error_s", "formula_s", "error_in_all_s", "formula_in_all_s", "caught_up_minutes"))
    row |= {"kind": "steep rise", "wish_minutes": 1.5, "largest_age_s": 60.0, "wishes": 2, "taken_back": 0}
    row |= {"smaller_while_behind": 0, "caught_up_minutes": 3.0}
    rival = {"kind": "steep rise", "caught_up_minutes": 4.0, "largest_age_s": 70.0}
    return {"outcomes": {"tidewise": {"q3": [row | changes]}, "autoscaler-2min": {"q3": [rival]}}}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"error_s": 10.5}, "error of the age 10.5 s"),
        ({"error_in_all_s": 6.0, "formula_in_all_s": 11.0}, "of backlog / rate 11.0 s"),
        ({"taken_back": 1}, "1 steps taken back"),
        ({"smaller_while_behind": 1}, "fewer slots"),
        ({"wish_minutes": 2.5}, "first wish after 2.5 minutes"),
        ({"wish_minutes": None}, "no wish"),
        ({"wishes": 3}, "3 wishes at one load"),
        ({"caught_up_minutes": 5.0}, "caught up after 5.0 minutes, autoscaler-2min after 4.0"),
        ({"caught_up_minutes": None}, "caught up not within the event"),
    ],
)
def test_what_does_not_hold_is_said(changes: dict[str, object], named: str) -> None:
    assert list_shortfalls([run_of()]) == []
    (text,) = list_shortfalls([run_of(**changes)])
    assert text.startswith("tidewise, q3, steep rise: ")
    assert named in text
