"""Errors of the models on held-back rows: champion and challenger on the same rows, and the gate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.domain.graph import JobGraph, Operator
from models.arrays import Floats
from models.bundle import FleetBundle
from models.job_models import closed_form_recovery_s
from models.latency import latency_errors
from models.topology import source_capacity
from spark_jobs.train.training_data import JOB, OPERATOR

_WITHIN_80 = 1.2816  # standard deviations that hold 80% of a normal distribution


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a challenger may replace the champion.

    Attributes:
        verdict: first (there is no champion), passed or failed.
        detail: one sentence for a person.
    """

    verdict: str
    detail: str


def judge(challenger_mape: float, champion_mape: float | None, compared: int, tolerance: float) -> Gate:
    """Compare on the same held-back rows; ``champion_mape`` None: there is no champion.

    The tolerance is absolute: 0.02 lets a challenger be two percentage points worse, about the size of chance.
    """
    if champion_mape is None:
        return Gate("first", "no champion yet; accepted as the first model")
    if not compared:
        return Gate("failed", "no held-back observation that both models know; the champion stays")
    passed = challenger_mape <= champion_mape + tolerance
    relation = "within" if passed else "beyond"
    detail = (
        f"capacity error {challenger_mape:.2%} against the champion's {champion_mape:.2%} on {compared} held-back "
        f"observations, {relation} the tolerance of {tolerance:.1%}"
    )
    return Gate("passed" if passed else "failed", detail)


def capacity_at(bundle: FleetBundle | None, rows: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return mean and sd (of curve and noise of one window) of the capacity of each row; NaN where it is not known."""
    mean, sd = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    if bundle is None or not bundle.index:
        return mean, sd
    index = pd.MultiIndex.from_tuples(bundle.operators())
    row = index.get_indexer(pd.MultiIndex.from_frame(rows[list(OPERATOR)]))
    count = bundle.arrays["grid_count"]
    parallelism = rows["parallelism"].to_numpy(np.int64)
    known = (row >= 0) & (parallelism <= count[row]) & (count[row] > 0)
    begin = np.cumsum(count) - count
    at = begin[row[known]] + parallelism[known] - 1
    mean[known] = bundle.arrays["mean_per_s"][at]
    noise = bundle.arrays["scalars"][row[known], 3] * mean[known]
    sd[known] = np.hypot(bundle.arrays["sd_per_s"][at], noise)
    return mean, sd


def score_capacities(held: DataFrame, challenger: FleetBundle, champion: FleetBundle | None) -> DataFrame:
    """Sum up errors per operator; ``compared`` counts the rows that both models know."""
    shared = held.sparkSession.sparkContext.broadcast((challenger, champion))

    def errors(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        new, old = shared.value
        for rows in frames:
            seen = rows["capacity_per_s"].to_numpy(float)
            mean, sd = capacity_at(new, rows)
            error, other = np.abs(mean - seen) / seen, np.abs(capacity_at(old, rows)[0] - seen) / seen
            inside = np.abs(mean - seen) <= _WITHIN_80 * sd
            yield rows[list(OPERATOR)].assign(error=error, champion_error=other, inside=inside.astype(float))

    kinds = ", ".join(f"{name} STRING" for name in OPERATOR) + ", error DOUBLE, champion_error DOUBLE, inside DOUBLE"
    # pandas' NaN arrives as null or as NaN, depending on how Arrow took it over.
    known = F.coalesce(~F.isnan("error"), F.lit(False))
    both = known & F.coalesce(~F.isnan("champion_error"), F.lit(False)) & F.col("champion_error").isNotNull()
    scored = held.mapInPandas(errors, kinds)
    return scored.groupBy(*OPERATOR).agg(
        F.count_if(known).alias("held"),
        F.sum(F.when(known, F.col("error"))).alias("error"),
        F.sum(F.when(known, F.col("inside"))).alias("inside"),
        F.count_if(both).alias("compared"),
        F.sum(F.when(both, F.col("error"))).alias("compared_error"),
        F.sum(F.when(both, F.col("champion_error"))).alias("champion_error"),
    )


def score_latencies(held: DataFrame, challenger: FleetBundle) -> DataFrame:
    """Sum up latency errors per job."""
    shared = held.sparkSession.sparkContext.broadcast(challenger)

    def errors(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for rows in frames:
            for key, mine in rows.groupby(list(JOB)):
                cluster, job = map(str, key)
                predicted = shared.value.for_job(cluster, job).latency.latency_ms(mine["utilisation"].to_numpy(float))
                error = latency_errors(predicted, mine["latency_ms"].to_numpy(float))
                yield mine[list(JOB)].assign(error=error)

    scored = held.mapInPandas(errors, ", ".join(f"{name} STRING" for name in JOB) + ", error DOUBLE")
    known = scored.where(~F.isnan("error"))
    return known.groupBy(*JOB).agg(F.count(F.lit(1)).alias("held"), F.sum("error").alias("error"))


def score_recoveries(events: DataFrame, graphs: DataFrame, shares: DataFrame, challenger: FleetBundle) -> DataFrame:
    """Predict the recovery of each event by a downtime learned without it, beside the measured one (null: none)."""
    nodes = graphs.groupBy(*JOB).agg(F.collect_list(F.struct("operator", "upstream")).alias("graph"))
    joined = events.join(nodes, on=list(JOB), how="inner").join(shares, on=list(JOB), how="inner")
    shared = events.sparkSession.sparkContext.broadcast(challenger)

    def predict(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for rows in frames:
            predicted = [_predicted_s(shared.value, row) for row in rows.itertuples(index=False)]
            yield rows[[*JOB, "kind", "resolution_s"]].assign(
                seen_s=rows["downtime_s"] + rows["catch_up_s"], predicted_s=np.array(predicted, float)
            )

    kinds = "kind STRING, resolution_s DOUBLE, seen_s DOUBLE, predicted_s DOUBLE"
    return joined.mapInPandas(predict, ", ".join(f"{name} STRING" for name in JOB) + ", " + kinds)


def recovery_errors(recoveries: pd.DataFrame) -> Floats:
    """Return the relative error of each event whose recovery was measured and is predicted to end, (n,).

    The end of a catch-up is seen at the next sample only, so the true recovery lies within the resolution before what
    was seen: a prediction in that range has no error.
    """
    seen, predicted, resolution = (
        recoveries[name].to_numpy(float) for name in ("seen_s", "predicted_s", "resolution_s")
    )
    known = np.isfinite(seen) & np.isfinite(predicted) & (seen > 0)
    beyond = np.maximum(predicted - seen, 0.0) + np.maximum(seen - resolution - predicted, 0.0)
    return np.asarray((beyond / seen)[known], float)


def _predicted_s(bundle: FleetBundle, event: object) -> float:
    row = event._asdict()  # type: ignore[attr-defined]
    models = bundle.for_job(row["cluster"], row["job"])
    graph = JobGraph.from_operators([Operator(node["operator"], tuple(node["upstream"])) for node in row["graph"]])
    rates = dict(row["source_rates"])
    parallelism = dict(row["parallelism_after"])
    capacity = {
        name: float(curve.mean_per_s[parallelism[name] - 1])
        for name, curve in models.capacity.items()
        if 1 <= parallelism.get(name, 0) <= len(curve.mean_per_s)
    }
    total = sum(rates.get(source, 0.0) for source in graph.sources)
    if not capacity or not total or not np.isfinite(row["load_per_s"]):
        return float("nan")
    mix = {source: rates.get(source, 0.0) / total for source in graph.sources}
    sustained = source_capacity(graph, models.selectivity, mix, capacity)
    replay_s = 0.0 if row["kind"] == "rescale" else models.recovery.checkpoint_interval_s
    return float(closed_form_recovery_s(row["downtime_without_s"], replay_s, row["load_per_s"], sustained))
