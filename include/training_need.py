"""Whether a training is wanted before the nightly one: for a first model, or for jobs that no training has seen.

Read without Spark, for a task that is to end in a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from include.settings import Settings, Training
from include.short_names import shorten_name
from include.tables import MODEL_JOBS, MODEL_VERSIONS, OBSERVATIONS

JobKey = tuple[str, str]
_FIRST = datetime(2000, 1, 1, tzinfo=UTC)  # no training is older
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
    """Return why a training is wanted now, by the windows lately of each job; None when it is not."""
    ready = {job for job, count in windows.items() if count >= options.first_windows}
    if not ready:
        return None
    if last is None:
        return f"there is no model yet, and jobs with {options.first_windows} windows or more: {len(ready)}"
    if as_of - last.as_of < timedelta(hours=options.retrain_after_h):
        return None
    if not last.gave_champion:
        return f"the last training gave no champion, and jobs with windows: {len(ready)}"
    unknown = sorted(ready - last.jobs)
    if not unknown:
        return None
    return f"in no model yet ({len(unknown)}): {', '.join(shorten_name('/'.join(job), 80) for job in unknown[:5])}"


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

    from include.lake_table import LakeTable, is_between  # heavy: DAG files are parsed without it

    since = as_of - LOOK_BACK
    columns, within = ("cluster", "job", "window_start"), is_between("window_start", since, as_of)
    rows = LakeTable(lake, OBSERVATIONS).read(columns, since.date(), as_of.date(), within)
    result = rows.filter(pc.field("window_start") < as_of).group_by(["cluster", "job"])
    counts = result.aggregate([("window_start", "count_distinct")]).to_pylist()
    return {(row["cluster"], row["job"]): row["window_start_count_distinct"] for row in counts}


def last_training(lake: str, as_of: datetime) -> LastTraining | None:
    """Return the newest training before a moment."""
    from include.lake_table import LakeTable, is_between

    columns, before = ("as_of", "gate", "champion_before"), is_between("as_of", _FIRST, as_of)
    rows = LakeTable(lake, MODEL_VERSIONS).read(columns, _FIRST.date(), as_of.date(), before).to_pylist()
    if not rows:
        return None
    newest: dict[str, Any] = max(rows, key=lambda row: row["as_of"])
    made: datetime = newest["as_of"]
    of_it = LakeTable(lake, MODEL_JOBS).read(
        ("cluster", "job"), made.date(), made.date(), is_between("as_of", made, made)
    )
    jobs = frozenset((row["cluster"], row["job"]) for row in of_it.to_pylist())
    return LastTraining(
        made, newest["gate"] in {"first", "passed", "reviewed"} or newest["champion_before"] is not None, jobs
    )
