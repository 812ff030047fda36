"""The time at which something is sent to a cluster."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from include.stages import Stage, StageRequest
from spark_jobs.apply.stage import stage_clock


def test_what_passed_before_the_first_step_is_sent_counts() -> None:
    began = datetime(2026, 11, 20, 19, tzinfo=UTC)
    request = StageRequest(Stage.APPLY, began, started_at=began, started_on_s=time.monotonic() - 40.0)
    assert timedelta(seconds=40) <= stage_clock(request)() - began < timedelta(seconds=45)
