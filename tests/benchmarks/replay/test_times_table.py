"""The table of what waits for slots cost."""

from __future__ import annotations

from benchmarks.replay.times_table import build_summary, build_table


def test_a_line_has_each_candidate_of_a_trace_and_a_wait() -> None:
    shared = {"trace": "a+slots_180s", "segment": "after_first_day", "late_minutes_per_day": 7.0, "seed": 0}
    rises = {"rises_ahead_share": 0.5, "rises_ahead_minutes": 10.0}
    rows = [
        {**shared, **rises, "policy": "programme", "cost": 100.4},
        {**shared, **rises, "policy": "controller_alone", "cost": 120.0},
        {**shared, **rises, "policy": "programme", "cost": 1.0, "segment": "all"},
        {**shared, **rises, "policy": "programme", "cost": 90.0, "trace": "b+taskmanagers_4"},
    ]
    assert build_table(rows) == [
        ["trace", "scenario", "seeds", "programme", "controller_alone", "rises ahead"],
        ["a", "slots after 180 s", "1", "100 (7)", "120 (7)", "50%, by 10 min"],
        ["b", "TaskManagers of 4", "1", "90 (7)", "-", "50%, by 10 min"],
    ]


def test_the_bound_is_what_it_is_and_not_what_its_schedule_costs() -> None:
    row = {"trace": "a+slots_0s", "segment": "after_first_day", "policy": "bound", "cost": 266.0, "bound": 149.2}
    row |= {"late_minutes_per_day": 94.0, "seed": 0, "rises_ahead_share": 0.0, "rises_ahead_minutes": 0.0}
    assert build_table([row, {**row, "policy": "programme"}])[1][3:5] == ["266 (94)", "149"]


def test_a_summary_has_the_mean_of_the_traces_that_both_have() -> None:
    shared = {"segment": "after_first_day", "seed": 0, "policy": "programme"}
    rows = [
        {**shared, "trace": f"{trace}+slots_{wait_s}s", "policy": policy, "cost": cost}
        for trace, wait_s, policy, cost in (
            ("a", 600, "programme", 80.0),
            ("b", 600, "programme", 200.0),
            ("a", 600, "controller_alone", 100.0),
            ("b", 600, "controller_alone", 100.0),
            ("c", 600, "controller_alone", 1.0),
            ("a", 60, "programme", 90.0),
        )
    ]
    heads, short, long = build_summary(rows)
    assert dict(zip(heads, long, strict=True))["controller_alone"] == "1.26 (0.80 to 2.00; 2)"
    assert [heads[0], short[0], long[0]] == ["scenario", "slots after 60 s", "slots after 600 s"]
    assert set(short[1:]) == {"-"}
