"""The train stage and the replay learn the same from the same windows and events."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include.domain.graph import JobGraph, Operator
from include.settings import Settings
from include.tables import JOB_GRAPHS, OBSERVATIONS, RESCALES
from lab.replay.failures import Downtime
from lab.replay.row_histories import CLUSTER, build_history, list_events
from lab.replay.train_alone import find_first_s, train_alone
from models.policies.observations import Observations
from models.training.held_out import find_held, hash_numbers, hash_texts
from models.training.job_tests import find_since
from spark_jobs.lake import Lake
from spark_jobs.train import training_data as data
from spark_jobs.train.forecast_scores import forecast_record
from spark_jobs.train.train_fleet import train_fleet
from tests.spark.synthetic_observations import write

pytestmark = pytest.mark.spark

AS_OF = datetime(2026, 3, 10, tzinfo=UTC)
JOB, WINDOW_S, COUNT = "line", 300, 3 * 288
GRAPH = JobGraph.from_operators([Operator("in"), Operator("work", ("in",)), Operator("out", ("work",))])
START_S = int(AS_OF.timestamp()) - COUNT * WINDOW_S


def observe() -> Observations:
    draws = np.random.default_rng(4)
    at = 2 + np.arange(COUNT) // 40 % 7
    per_s = 100.0 * at / (1 + 0.03 * (at - 1)) * np.exp(0.03 * draws.standard_normal(COUNT))
    busy = 0.6 + 0.3 * np.sin(np.arange(COUNT) / 25.0)
    rate = np.repeat((busy * per_s)[:, None], 3, axis=1)
    shares = busy[:, None] * [0.05, 1.0, 0.5]
    nothing = np.full(rate.shape, np.nan)
    latency = nothing.copy()
    latency[:, 0] = 50.0 / (1.0 - busy)
    return Observations(
        window_start_s=START_S + WINDOW_S * np.arange(COUNT),
        window_s=WINDOW_S,
        parallelism=np.repeat(at[:, None], 3, axis=1),
        processing_rate_per_s=rate,
        output_rate_per_s=rate * [1.0, 0.5, 0.0],
        true_processing_rate_per_s=rate / shares,
        true_output_rate_per_s=rate / shares * [1.0, 0.5, 0.0],
        target_data_rate_per_s=nothing,
        busy_share=shares,
        idle_share=1.0 - shares,
        backpressured_share=np.zeros(rate.shape),
        pending_records=nothing,
        latency_ms=latency,
        disturbed=np.arange(COUNT) % 40 == 0,
    )


DOWNTIMES = [
    Downtime("rescale", 20_000.0, 35.0, math.nan),
    Downtime("restart", 90_000.0, 80.0, 12.0),
    Downtime("rescale", 150_000.0, 45.0, math.nan),
]


def as_rows(observed: Observations) -> pd.DataFrame:
    """The same windows as rows of silver.observations."""
    starts = [datetime.fromtimestamp(at, UTC) for at in observed.window_start_s.tolist()]
    parts = [
        pd.DataFrame(
            {
                "cluster": CLUSTER,
                "job": JOB,
                "operator": name,
                "window_start": starts,
                "window_s": WINDOW_S,
                "is_source": GRAPH.operators[place].is_source,
                "parallelism": observed.parallelism[:, place],
                "observed_processing_rate_per_s": observed.processing_rate_per_s[:, place],
                "observed_output_rate_per_s": observed.output_rate_per_s[:, place],
                "true_processing_rate_per_s": observed.true_processing_rate_per_s[:, place],
                "busy_share": observed.busy_share[:, place],
                "age_s": observed.latency_ms[:, place] / 1000.0,
                "disturbed": observed.disturbed,
            }
        )
        for place, name in enumerate(GRAPH.names)
    ]
    return pd.concat(parts, ignore_index=True)


def event_rows() -> pd.DataFrame:
    parallelism = dict.fromkeys(GRAPH.names, 4)
    return pd.DataFrame(
        [
            {
                "cluster": CLUSTER,
                "job": JOB,
                "started_at": datetime.fromtimestamp(START_S + one.at_s, UTC),
                "running_at": datetime.fromtimestamp(START_S + one.at_s + one.downtime_s, UTC),
                "kind": one.kind,
                "parallelism_before": parallelism,
                "parallelism_after": parallelism,
                "downtime_s": one.downtime_s,
                "checkpoint_age_s": one.checkpoint_age_s,
            }
            for one in DOWNTIMES
        ]
    )


def graph_rows() -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "cluster": CLUSTER,
                "job": JOB,
                "operator": one.name,
                "position": place,
                "upstream": list(one.upstream),
                "parallelism": 2,
                "max_parallelism": one.max_parallelism,
                "observed_at": AS_OF - timedelta(days=1),
            }
            for place, one in enumerate(GRAPH.operators)
        ]
    )


def test_the_train_stage_and_the_replay_learn_the_same(spark: SparkSession, lake: Lake, settings: Settings) -> None:
    observed = observe()
    write(lake, OBSERVATIONS, as_rows(observed), "window_start")
    write(lake, RESCALES, event_rows(), "started_at")
    write(lake, JOB_GRAPHS, graph_rows(), "observed_at")
    training = settings.training
    inputs = data.read_inputs(lake, AS_OF, training)
    content = data.hash_observations(inputs.observations, AS_OF)
    trained = train_fleet(inputs, settings, "v1", content, champion=None, forecasts=forecast_record(lake, AS_OF))
    by_stage = trained.assembled.bundle.for_job(CLUSTER, JOB)

    history = build_history(JOB, GRAPH, observed, slots_max=64)
    as_of_s = AS_OF.timestamp()
    since_s = find_since(find_first_s(history.windows), as_of_s, None, training)
    events = list_events(DOWNTIMES, 0.0, COUNT * WINDOW_S)
    (by_replay,) = train_alone([history], [events], training, as_of_s, [since_s])

    assert by_replay is not None
    assert by_replay.selectivity == pytest.approx(dict(by_stage.selectivity), rel=1e-12)
    assert by_replay.edges == pytest.approx(dict(by_stage.edges), rel=1e-12)
    assert by_replay.recovery == by_stage.recovery
    np.testing.assert_allclose(by_replay.latency.knots, by_stage.latency.knots, rtol=1e-12)
    np.testing.assert_allclose(by_replay.latency.latency_at_knots_ms, by_stage.latency.latency_at_knots_ms, rtol=1e-12)
    assert set(by_replay.capacity) == set(by_stage.capacity) == set(GRAPH.names)
    for name, curve in by_stage.capacity.items():
        own = by_replay.capacity[name]
        np.testing.assert_array_equal(own.observed, curve.observed)
        # Curves are fitted in batches, and the last bits of a sum depend on the width of its batch.
        for measure in ("observed_per_s", "mean_per_s", "sd_per_s", "tail_ratio"):
            np.testing.assert_allclose(getattr(own, measure), getattr(curve, measure), rtol=1e-9)


def test_windows_are_held_out_as_by_sparks_hash(spark: SparkSession) -> None:
    texts = ["", "eu", "é", "a name of more than thirty-two bytes, to fill a stripe", "12345678", "123456789012"]
    starts = [0, START_S, -5, 2**40]
    rows = spark.createDataFrame(
        [(one, other, at) for one in texts for other in texts for at in starts], "a STRING, b STRING, t LONG"
    )
    hashed = rows.select(
        "*",
        F.xxhash64("a", "b").alias("ab"),
        F.xxhash64("t").alias("of_t"),
        F.pmod(F.xxhash64("a", "b", "t"), F.lit(10_000)).alias("bucket"),
    )
    for row in hashed.collect():
        assert hash_texts((row["a"], row["b"])) == row["ab"]
        assert hash_numbers(np.array([row["t"]])).tolist() == [row["of_t"]]
        held = find_held((row["a"], row["b"]), np.array([row["t"]]), 0.2)
        assert held.tolist() == [row["bucket"] < 2000]
