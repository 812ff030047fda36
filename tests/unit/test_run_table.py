"""What `make run` prints of its plan."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from cli.run_table import WIDTH, plan_table
from tests.unit.test_risk import SHIPPED

STEP = {
    "status": "planned",
    "cluster": "simulated",
    "job": "clicks",
    "apply_at": "2026-11-20T20:10:25Z",
    "parallelism_from": {"source": 2, "parse": 4, "sink": 1},
    "parallelism_to": {"source": 2, "parse": 6, "sink": 2},
    "slots_from": 4,
    "slots": 6,
    "day_late_minutes": 3.25,
    "reason": "4 -> 6 slots: load up to 12k/s, prevents 12 late minutes; 3 late minutes expected in 24 h",
}


def printed(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    Console(file=text, width=WIDTH).print(plan_table(rows))
    return text.getvalue()


def test_a_job_has_its_next_step_and_the_short_sentence_of_its_reason() -> None:
    text = printed([STEP, STEP | {"apply_at": "2026-11-20T22:00:00Z", "slots": 5}])
    for part in ("2026-11-20 20:10", "clicks", "4 -> 6", "3.2", "load up to 12k/s, prevents 12 late minutes"):
        assert part in text
    assert "22:00" not in text
    assert "2 steps of 1 job; 3 late minutes expected in the day; all of them are in plans.json" in text


def test_the_plan_of_the_shipped_data_fits_a_screen() -> None:
    rows = [row | {"parallelism_from": {}, "parallelism_to": {}} for row in json.loads(SHIPPED.read_text("utf-8"))]
    for row in rows:
        row["apply_at"] = f"{datetime.fromtimestamp(row['apply_at_s'] or 0, UTC):%Y-%m-%dT%H:%M:%SZ}"
    text = printed(rows)
    assert len(text.splitlines()) <= 20
    assert "70 steps of 13 jobs, of which the first 12 are shown; " in text


def test_jobs_without_a_step_are_accounted_for() -> None:
    held = {"status": "hold", "job": "quiet", "cluster": "simulated"}
    refused = [{"status": "refused", "refusal": "stale_metrics", "job": name} for name in ("old", "gone")]
    assert "1 job stays as it is: quiet; 2 refused: stale_metrics (gone, old)" in printed([held, *refused])
