"""Whether a training is wanted before the nightly one: for a first model, or for jobs that no training has seen.

Read without Spark, for a task that is to end in a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from include.settings import Settings, Training
from include.tables import MODEL_JOBS, MODEL_VERSIONS, OBSERVATIONS, Table

JobKey = tuple[str, str]
LOOK_BACK = timedelta(hours=3)
"""A job that runs has windows within this time; older ones are of the past."""


@dataclass(frozen=True, slots=True)
class LastTraining:
    """The newest training.

    Attributes:
        as_of: of it.
        gave_champion: whether there has been a champion since.
        jobs: that it had models of.
    """

    as_of: datetime
    gave_champion: bool
    jobs: frozenset[JobKey]


def judge_need(
    windows: Mapping[JobKey, int], last: LastTraining | None, as_of: datetime, options: Training
) -> str | None:
    """Return why a training is wanted now, None when it is not.

    Args:
        windows: job -> its windows lately.
        last: the newest training; None before the first.
        as_of: now.
        options: the settings.
    """
    ready = {job for job, count in windows.items() if count >= options.first_windows}
    if not ready:
        return None
    if last is None:
        return f"there is no model yet, and {len(ready)} jobs have {options.first_windows} windows or more"
    if as_of - last.as_of < timedelta(hours=options.retrain_after_h):
        return None
    if not last.gave_champion:
        return f"the last training gave no champion, and {len(ready)} jobs have windows"
    unknown = sorted(ready - last.jobs)
    if not unknown:
        return None
    return f"{len(unknown)} jobs are in no model yet: {', '.join('/'.join(job)[:80] for job in unknown[:5])}"


def find_training_need(settings: Settings, as_of: datetime) -> str | None:
    """Return why a training is wanted as of a moment, from the tables; None when it is not."""
    return judge_need(
        count_windows(settings.paths.lake, as_of),
        last_training(settings.paths.lake, as_of),
        as_of,
        settings.training,
    )


def count_windows(lake: str, as_of: datetime) -> dict[JobKey, int]:
    """Return job -> number of its windows within the look-back."""
    import pyarrow.compute as pc

    since = as_of - LOOK_BACK
    start = pc.field("window_start")
    rows = _read(lake, OBSERVATIONS, ("cluster", "job", "window_start"), _days(since, as_of) & (start >= since))
    if rows is None:
        return {}
    found = rows.filter(pc.field("window_start") < as_of).group_by(["cluster", "job"])
    counts = found.aggregate([("window_start", "count_distinct")]).to_pylist()
    return {(row["cluster"], row["job"]): row["window_start_count_distinct"] for row in counts}


def last_training(lake: str, as_of: datetime) -> LastTraining | None:
    """Return the newest training before a moment."""
    import pyarrow.compute as pc

    columns = ("as_of", "gate", "champion_before")
    rows = _read(lake, MODEL_VERSIONS, columns, pc.field("as_of") <= as_of)
    if rows is None or not rows.num_rows:
        return None
    newest: dict[str, Any] = max(rows.to_pylist(), key=lambda row: row["as_of"])
    made: datetime = newest["as_of"].replace(tzinfo=UTC)
    known = _read(lake, MODEL_JOBS, ("cluster", "job", "as_of"), _days(made, made) & (pc.field("as_of") == made))
    jobs = frozenset((row["cluster"], row["job"]) for row in known.to_pylist()) if known else frozenset()
    return LastTraining(made, newest["gate"] in {"first", "passed"} or newest["champion_before"] is not None, jobs)


def _days(since: datetime, until: datetime) -> Any:
    import pyarrow.compute as pc

    return (pc.field("date") >= since.date()) & (pc.field("date") <= until.date())


def _read(lake: str, table: Table, columns: Iterable[str], rows: Any) -> Any:
    """Return some columns and rows of a table as Arrow, None when there is no table."""
    from deltalake import DeltaTable

    path = f"{lake}/{table.relative_path}"
    if not DeltaTable.is_deltatable(path):
        return None
    return DeltaTable(path).to_pyarrow_dataset().to_table(columns=list(columns), filter=rows)
