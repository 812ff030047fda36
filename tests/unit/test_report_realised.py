"""Expected beside realised: from rows of plans, rescales and windows to what the page says."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest

from spark_jobs.report.outcomes import list_outcomes, measure_outcome, policy_costs

AS_OF = datetime(2026, 11, 20, 18, tzinfo=UTC)
NOW = pd.Timestamp("2026-11-20 18:00")


def load(hours: int = 24) -> pd.DataFrame:
    bins = pd.date_range(NOW - pd.Timedelta(hours=hours), NOW, freq="5min", inclusive="left")
    hour = (NOW - bins).total_seconds().to_numpy() / 3600.0
    return pd.DataFrame(
        {
            "bin": bins,
            "rate_per_s": 50e3 + 1e3 * hour,
            "slots": [6 if ago > 4 else 9 for ago in hour],
            "late_share": [1.0 if 3.9 < ago <= 4.1 else 0.0 for ago in hour],
        }
    )


def rescales() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "started_at": [NOW - pd.Timedelta(hours=4), NOW - pd.Timedelta(hours=9)],
            "kind": ["rescale", "restart"],
            "downtime_s": [40.0, 90.0],
            "catch_up_s": [60.0, None],
        }
    )


def due(ago_h: float, outcome: str = "confirmed", **changes: object) -> dict[str, object]:
    at = NOW - pd.Timedelta(hours=ago_h)
    row: dict[str, object] = {
        "as_of": at - pd.Timedelta(hours=1),
        "apply_at": at,
        "effective_at": at + pd.Timedelta(minutes=5),
        "valid_until": NOW + pd.Timedelta(hours=6),
        "decided_at": at + pd.Timedelta(seconds=20),
        "slots": 9,
        "p_late": 0.02,
        "expected_load_q90_per_s": 60e3,
        "expected_recovery_s": 120.0,
        "outcome": outcome,
        "final_status": outcome.split(":", maxsplit=1)[0],
    }
    return row | changes


def test_a_step_is_followed_until_the_next_one() -> None:
    steps = pd.DataFrame([due(2, slots=8), due(4), due(3, "refused: stale_plan")])
    last, refused, first = list_outcomes(steps, load(), rescales(), AS_OF)
    assert first.minutes == pytest.approx(120.0)  # to the next that was not refused
    assert (first.slots, first.ran_slots, first.took_s) == (9, 9.0, 100.0)
    assert first.load_per_s == pytest.approx(50e3 + 1e3 * 47 / 12)
    assert first.late_minutes == pytest.approx(5.0)  # the last of three late bins
    assert (last.slots, last.minutes, last.took_s) == (8, 115.0, None)
    assert refused.status == "refused: stale_plan"
    assert refused.ran_slots is None
    assert refused.late_minutes is None


def test_a_dry_run_shows_what_the_job_did_meanwhile_but_no_rescale_of_its_own() -> None:
    [only] = list_outcomes(pd.DataFrame([due(4, "dry_run")]), load(), rescales(), AS_OF)
    assert (only.ran_slots, only.took_s) == (9.0, None)


def test_how_a_job_ran() -> None:
    result = measure_outcome(load(), rescales())
    assert result is not None
    assert result.days == pytest.approx(1.0)
    assert result.late_minutes_per_day == pytest.approx(15.0)
    assert result.slot_hours_per_day == pytest.approx(20 * 6 + 4 * 9, abs=1.0)
    assert (result.rescales_per_day, result.restarts_per_day, result.recovery_s) == (1.0, 1.0, 100.0)
    assert measure_outcome(load().iloc[:0], rescales()) is None


def test_policies_come_cheapest_first_and_failed_ones_last() -> None:
    names = ["ds2", "planner", "phoebe"]
    numbers = {name: [1.4, 1.1, None] for name in ("cost_vs_clairvoyant", "rescales_per_day", "late_minutes_per_day")}
    flags = {"recommended": [False, True, None], "in_use": [True, False, None]}
    rows = pd.DataFrame(
        {"policy": names, **numbers, "slot_hours": [1.0, 2.0, None], "days": 7.0, "note": None, **flags}
        | {"error": [None, None, "broken"]}
    )
    result = policy_costs(rows)
    assert [one.policy for one in result] == ["planner", "ds2", "phoebe"]
    assert [one.recommended for one in result] == [True, False, False]
    assert result[2].cost_vs_clairvoyant is None
    assert result[2].error == "broken"
