"""Windows by closed day are those of silver.observations, whatever happened to these: no bit of a model is another."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

from include.settings import Settings
from include.tables import JOB_WINDOWS, OBSERVATIONS, OPERATOR_KEYS
from spark_jobs.lake import Lake
from spark_jobs.source_inputs.renames import follow_renames, read_renames
from spark_jobs.train import day_windows
from spark_jobs.train import training_data as data
from spark_jobs.train.learn_jobs import LearnTask, learn_jobs
from spark_jobs.train.training_events import list_spans
from tests.spark.synthetic_observations import AS_OF, CHAIN, DAY, fill, observations, write

pytestmark = pytest.mark.spark

LATER = AS_OF - DAY / 2
"""The last day is cut, as is the first one of three."""


Learnt = dict[tuple[str, str], tuple[Any, np.ndarray]]


def learn_from_rows(lake: Lake, since: datetime, task: LearnTask) -> Learnt:
    """Return what a training learns of each job from rows of silver.observations alone."""
    followed = follow_renames(lake.read(OBSERVATIONS), read_renames(lake, since, LATER))
    in_time = followed.where((F.col("window_start") >= F.lit(since)) & (F.col("window_start") < F.lit(LATER)))
    rows = day_windows.select_windows(in_time).toArrow()
    jobs = set(zip(rows["cluster"].to_pylist(), rows["job"].to_pylist(), strict=True))
    return {job: task.learn(job, rows.filter(pc.equal(rows["job"], job[1]))) for job in sorted(jobs)}


def assert_same(one: Any, other: Any) -> None:
    """Every number is the same, to its last bit."""
    assert type(one) is type(other)
    if is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_same(mine, theirs)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist() or one.tobytes() == other.tobytes()
    else:
        assert one == other or (one != one and other != other)  # noqa: PLR0124 - NaN


def compare(lake: Lake, settings: Settings) -> data.DataSummary:
    """Days teach the same as their rows; returns what the observations are."""
    inputs = data.read_inputs(lake, LATER, settings.training)
    content = data.hash_observations(inputs.observations, LATER)
    since_s = (LATER - timedelta(hours=9)).timestamp()
    operators, spans = data.known_operators(inputs.graphs), list_spans(inputs.events)
    task = LearnTask(settings, LATER.timestamp(), since_s, operators, spans)
    learnt, events = learn_jobs(inputs.observations, task, inputs.events)
    rows = learn_from_rows(lake, LATER - timedelta(days=settings.training.lookback_days), task)
    assert len(rows) == 2
    assert_same([own for own, _ in rows.values()], learnt)
    for (_, job), (_, sustained) in rows.items():
        own = events.loc[events["job"] == job, "capacity_after_per_s"].to_numpy()
        assert_same(sustained, own)
    return content


def written(rows: pd.DataFrame) -> pd.DataFrame:
    """Every operator has an id; some windows are disturbed, and of some nothing but the times is known."""
    ids = rows["operator"].map({name: f"{place:032x}" for place, name in enumerate(CHAIN)})
    numbers = np.arange(len(rows))
    unknown = numbers % 13 == 0
    result = rows.assign(vertex_id=ids, disturbed=numbers % 7 == 0)
    result.loc[unknown, ["busy_share", "true_processing_rate_per_s"]] = None
    return result


def keys(name: str, days: int) -> pd.DataFrame:
    """Return the operators of ``orders`` as seen some days before, one of them under a name."""
    names = [name if one == "parse" else one for one in CHAIN]
    rows = [
        {
            "cluster": "c5m",
            "job": "orders",
            "operator": one,
            "vertex_id": f"{place:032x}",
            "position": place,
            "upstream": names[max(place - 1, 0) : place],
            "observed_at": AS_OF - days * DAY,
        }
        for place, one in enumerate(names)
    ]
    return pd.DataFrame(rows)


@pytest.mark.long
def test_a_training_from_days_learns_what_one_from_rows_does(lake: Lake, settings: Settings) -> None:
    fill(lake, ["rides", "orders"])
    rows = written(pd.concat([observations("rides", days=5), observations("orders", days=5, seed=1)]))
    write(lake, OBSERVATIONS, rows, "window_start")
    first = compare(lake, settings)
    before, since = LATER.date(), (LATER - 28 * DAY).date()
    span = since + DAY, before - DAY
    assert day_windows.update_days(lake, *span) == 0  # nothing is read twice
    stored = lake.read(JOB_WINDOWS).toPandas()
    assert stored.groupby("date").size().tolist() == [3] * 4  # two jobs, and that it was looked at

    late = rows[rows["window_start"] == rows["window_start"].iloc[400]].assign(busy_share=0.123, disturbed=False)
    merged = pd.concat([rows[rows["window_start"] != late["window_start"].iloc[0]], late])
    write(lake, OBSERVATIONS, merged, "window_start")
    second = compare(lake, settings)
    assert second.hash != first.hash

    write(lake, OPERATOR_KEYS, pd.concat([keys("parse", 4), keys("parse more", 1)]), "observed_at")
    renamed = compare(lake, settings)
    assert renamed.hash != second.hash
    assert renamed.operators == 2 * len(CHAIN)
