"""Promised beside came: from rows of plans, rescales and windows to rows of gold.step_results."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest

from spark_jobs.report.step_results import list_results

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
        "cluster": "live",
        "job": "checkout",
        "step_id": f"step-{ago_h}",
        "origin": "plan",
        "as_of": at - pd.Timedelta(hours=1),
        "apply_at": at,
        "effective_at": at + pd.Timedelta(minutes=5),
        "valid_until": NOW + pd.Timedelta(hours=6),
        "decided_at": at + pd.Timedelta(seconds=20),
        "slots_from": 6,
        "slots": 9,
        "p_late": 0.02,
        "expected_late_minutes": 3.0,
        "expected_load_q90_per_s": 60e3,
        "expected_recovery_s": 120.0,
        "outcome": outcome,
        "final_status": outcome.split(":", maxsplit=1)[0],
    }
    return row | changes


def test_a_step_is_followed_until_the_next_one() -> None:
    steps = pd.DataFrame([due(2, slots=8), due(4), due(3, "refused: stale_plan")])
    first, refused, last = list_results(steps, load(), rescales(), AS_OF)
    assert (first["ended_at"] - first["effective_at"]).total_seconds() == pytest.approx(7200)  # that was not refused
    assert (first["slots_from"], first["slots_to"], first["slots_ran"], first["took_s"]) == (6, 9, 9.0, 100.0)
    assert first["load_max_per_s"] == pytest.approx(50e3 + 1e3 * 47 / 12)
    assert first["late_minutes"] == pytest.approx(5.0)  # the last of three late bins
    assert first["late_minutes_promised"] == 3.0
    assert (last["slots_to"], last["took_s"]) == (8, None)
    assert (AS_OF - last["effective_at"]).total_seconds() == 115 * 60
    assert (refused["outcome"], refused["status"]) == ("refused: stale_plan", "refused")
    assert refused["slots_ran"] is refused["late_minutes"] is None


def test_a_dry_run_has_what_the_job_did_meanwhile_but_no_rescale_of_its_own() -> None:
    [only] = list_results(pd.DataFrame([due(4, "dry_run")]), load(), rescales(), AS_OF)
    assert (only["slots_ran"], only["took_s"]) == (9.0, None)


def test_lateness_that_nobody_tells_is_not_none() -> None:
    [only] = list_results(pd.DataFrame([due(4)]), load().assign(late_share=None), rescales(), AS_OF)
    assert only["late_minutes"] is None
    assert only["slots_ran"] == 9.0
