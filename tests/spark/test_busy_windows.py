"""Capacity points of operators whose capacity depends on load: the rule of the models, in Spark."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from include.settings import Training
from models.capacity.busy_windows import find_busy_enough
from models.capacity.robust_means import number_points
from spark_jobs.job_inputs.busy_windows import with_busiest
from spark_jobs.train.fits import capacity_rows
from spark_jobs.train.training_data import POINT, capacity_points, held_capacities

pytestmark = pytest.mark.spark
START = datetime(2026, 11, 1, tzinfo=UTC)
SCHEMA = (
    "cluster STRING, job STRING, operator STRING, parallelism INT, window_start TIMESTAMP, "
    "busy_share DOUBLE, capacity_per_s DOUBLE, held BOOLEAN"
)


def frame(
    spark: SparkSession, operators: dict[str, list[tuple[int, float, float]]], *, held: bool = False
) -> DataFrame:
    """Windows of one job, five minutes each: operator -> (parallelism, busy share, capacity)."""
    rows = [
        ("eu", "q", name, at, START + timedelta(minutes=5 * number), busy, per_s, held)
        for name, windows in operators.items()
        for number, (at, busy, per_s) in enumerate(windows)
    ]
    return spark.createDataFrame(rows, SCHEMA)


def points(observations: DataFrame) -> pd.DataFrame:
    return capacity_points(observations, Training()).toPandas().set_index(["operator", "parallelism"]).sort_index()


def test_points_come_from_windows_that_are_busy_enough(spark: SparkSession) -> None:
    result = points(
        frame(
            spark,
            {
                "join": [(2, 0.52, 1100.0)] * 3 + [(2, 0.2, 1900.0)] * 9,
                "window": [(3, 0.71, 784.0)] + [(3, 0.29, 500.0)] * 9 + [(2, 0.2, 300.0)],
                "sink": [(1, 0.06, 2850.0), (1, 0.03, 4000.0), (1, 0.06, 2850.0)],
            },
        )
    )
    assert result.loc[("join", 2), "capacities_per_s"].tolist() == [1100.0] * 3
    assert result.loc[("window", 3), "capacities_per_s"].tolist() == [784.0]
    assert result.loc[("sink", 1), "capacities_per_s"].tolist() == [2850.0] * 2
    assert result["busiest"].to_dict() == {
        ("join", 2): 0.52,
        ("sink", 1): 0.06,
        ("window", 2): 0.2,
        ("window", 3): 0.71,
    }
    assert result["idle"].to_dict() == {
        ("join", 2): False,
        ("sink", 1): True,
        ("window", 2): False,
        ("window", 3): False,
    }
    fits = capacity_rows(result.reset_index().assign(top=4, key_groups=128.0)).set_index("operator")
    for operator, at, true in (("join", 2, 1147.0), ("window", 3, 728.0)):
        assert fits.loc[operator, "mean_per_s"][at - 1] == pytest.approx(true, rel=0.1)
    sink = fits.loc["sink"]
    assert sink["sd_per_s"][0] >= 0.5 * sink["mean_per_s"][0]  # 6% busy: it may well do half of that
    assert fits["busiest_share"].to_dict() == {"join": 0.52, "sink": 0.06, "window": 0.71}


def test_no_model_is_judged_on_what_light_use_made_of_a_parallelism(spark: SparkSession) -> None:
    windows = {"join": [(2, 0.52, 1100.0), (4, 0.16, 5000.0)], "sink": [(1, 0.06, 2850.0)]}
    held = held_capacities(frame(spark, windows, held=True), Training()).collect()
    assert {(row["operator"], row["parallelism"], row["idle"]) for row in held} == {
        ("join", 2, False),
        ("sink", 1, True),
    }


def test_spark_and_models_choose_the_same_windows(spark: SparkSession) -> None:
    draws = np.random.default_rng(7)
    count = 400
    rows = pd.DataFrame({
        "cluster": "eu", "job": "q", "operator": draws.choice(["a", "b", "c"], count),
        "parallelism": draws.integers(1, 4, count),
        "window_start": [START + timedelta(hours=int(hour)) for hour in draws.permutation(count)],
        "busy_share": draws.uniform(0.01, 1.0, count) ** draws.choice([0.5, 1, 3], count),
        "capacity_per_s": draws.lognormal(7.0, 1.0, count), "held": False,
    })  # fmt: skip
    taken = with_busiest(spark.createDataFrame(rows, SCHEMA), POINT).toPandas()
    point = number_points(pd.factorize(rows["operator"])[0].astype(np.int64), rows["parallelism"].to_numpy(np.int64))
    times = np.array([one.timestamp() for one in rows["window_start"]])
    reported = find_busy_enough(point, times, rows["busy_share"].to_numpy(), rows["capacity_per_s"].to_numpy())
    assert 0 < reported.sum() < count
    assert sorted(taken["capacity_per_s"]) == sorted(rows.loc[reported, "capacity_per_s"])
