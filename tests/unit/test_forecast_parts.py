"""Series on their way to Spark's workers and back: in parts of whole batches, as bytes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from spark_jobs.forecast import forecast_sources
from spark_jobs.forecast.forecast_sources import BATCHES
from spark_jobs.forecast.series import BATCH, KEYS, make_worker
from spark_jobs.packed_objects import PACKED, unpack

HASHES = np.random.default_rng(3).integers(-(2**63), 2**63, 500)


def series(count: int = 500) -> pa.Table:
    return pa.table(
        {"job": [f"job-{at}" for at in range(count)], "rate_per_s": [[float(at), None] for at in range(count)]}
    )


@pytest.mark.parametrize(("least", "parts"), [(1, 1), (2, 2), (5, 5), (100, BATCHES)])
def test_parts_have_whole_batches_of_about_as_many_series(least: int, parts: int) -> None:
    made = forecast_sources.deal_series(series(), HASHES, least)
    assert len(made) == parts
    assert sorted(job for one in made for job in one["job"].to_pylist()) == sorted(series()["job"].to_pylist())
    batches = [set(one[BATCH].to_pylist()) for one in made]
    assert sum(map(len, batches)) == len(set.union(*batches)) == BATCHES
    if parts < BATCHES // 2:
        sizes = [len(one) for one in made]
        assert max(sizes) - min(sizes) < 500 / BATCHES


def test_a_series_goes_into_the_batch_that_spark_would_deal_it_to() -> None:
    (made,) = forecast_sources.deal_series(series(3), np.array([-1, 16, 35]), 1)
    assert dict(zip(made["job"].to_pylist(), made[BATCH].to_pylist(), strict=True)) == {
        "job-0": 15,
        "job-1": 0,
        "job-2": 3,
    }


def test_parts_are_small_enough_to_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast_sources, "_SENT_BYTES", series().nbytes // 3)
    assert len(forecast_sources.deal_series(series(), HASHES, 1)) in {3, 4}


def test_groups_of_batches_are_small_enough_to_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(forecast_sources.group_batches(HASHES, 8)) == [frozenset(range(BATCHES))]
    monkeypatch.setattr(forecast_sources, "_HELD_BYTES", 100 * 8)
    groups = list(forecast_sources.group_batches(HASHES, 8))
    assert sorted(batch for group in groups for batch in group) == list(range(BATCHES))
    assert all(np.isin(HASHES % BATCHES, list(group)).sum() <= 100 for group in groups)
    assert list(forecast_sources.group_batches(HASHES[:0], 8)) == []


def test_no_series_are_no_parts() -> None:
    assert forecast_sources.deal_series(series(0), np.zeros(0, np.int64), 2) == []


def test_a_worker_works_on_each_batch_alone_and_sends_unknown_figures_as_none() -> None:
    def work(batch: pd.DataFrame) -> pd.DataFrame:
        assert list(batch.index) == list(range(len(batch)))
        return pd.DataFrame({"job": batch["job"], "of": len(batch), "q": [np.array([np.nan, 1.0])] * len(batch)})

    schema = pa.schema([("job", pa.string()), ("of", pa.int64()), ("q", pa.list_(pa.float64()))])
    part = pa.table({"job": ["a", "b", "c"], BATCH: [4, 2, 4]})
    (sent,) = make_worker(work, schema, lambda rows: rows.select(["job"]))(iter([part]))
    ((made,), (keys,)) = (unpack([pa.record_batch({PACKED: sent[name]})]) for name in (PACKED, KEYS))
    assert keys == made.select(["job"])
    assert made.schema == schema
    assert made.to_pylist() == [
        {"job": "b", "of": 1, "q": [None, 1.0]},
        {"job": "a", "of": 2, "q": [None, 1.0]},
        {"job": "c", "of": 2, "q": [None, 1.0]},
    ]


def test_a_worker_loads_neither_the_settings_nor_the_lake_nor_lightgbm() -> None:
    heavy = ("include.settings", "deltalake", "lightgbm", "sklearn")
    ours = "spark_jobs.forecast.forecast_rows, spark_jobs.packed_objects"
    code = f"import sys, {ours}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
