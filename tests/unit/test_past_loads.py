"""Past loads of jobs that are new to a policy, read by column."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from include.lake_table import LakeTable
from include.tables import OBSERVATIONS
from spark_jobs.plan_inputs.past_loads import read_past_loads
from spark_jobs.source_inputs.renames import OperatorName

AS_OF = datetime(2026, 11, 20, 18, tzinfo=UTC)
JOBS = [("c", "known"), ("c", "new"), ("c", "silent")]


def row(job: str, operator: str, minutes_ago: int, **own: object) -> dict[str, object]:
    start = AS_OF - timedelta(minutes=minutes_ago)
    given = {"window_start": start, "window_s": 60, "is_source": True, "date": start.date(), "hour": start.hour}
    return {"cluster": "c", "job": job, "operator": operator, "vertex_id": operator, **given, **own}


def test_loads_of_all_sources_are_added_by_window_and_averaged_by_step(tmp_path: Path) -> None:
    """What was taken in counts where it is not known what arrived; without either a window counts for nothing."""
    table = LakeTable(str(tmp_path), OBSERVATIONS)
    bound = {"target_data_rate_per_s": 99.0, "target_is_lower_bound": True, "observed_processing_rate_per_s": 5.0}
    table.append(
        [
            row("new", "a", 10, target_data_rate_per_s=10.0),
            row("new", "b", 10, **bound),
            row("new", "a", 9, target_data_rate_per_s=20.0),
            row("new", "b", 9, target_data_rate_per_s=25.0),
            row("new", "a", 4, target_data_rate_per_s=1.0),
            row("new", "b", 4),
            row("new", "a", 3, target_data_rate_per_s=7.0),
            row("new", "c", 3, target_data_rate_per_s=7.0, is_source=False),
            row("new", "gone", 3, target_data_rate_per_s=1.0),
            row("new", "a", 37 * 60, target_data_rate_per_s=1e9),
            row("known", "a", 10, target_data_rate_per_s=1.0),
        ]
    )
    current: dict[OperatorName, str | None] = {("c", "new", "gone", "gone"): None}
    _, new, silent = read_past_loads(table, AS_OF, {("c", "new")}, JOBS, current)
    step = int(AS_OF.timestamp()) // 300
    assert new is not None
    assert new["at"].tolist() == [step - 2, step - 1]
    assert new["load_per_s"].tolist() == [(15.0 + 45.0) / 2, 7.0]
    assert silent is None
