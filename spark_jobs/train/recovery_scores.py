"""Recovery times as they were to be expected, beside those that were seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pyspark import SparkContext

from include.domain.graph import GraphError, JobGraph, Operator
from models.arrays import Floats
from models.bundle.fleet_bundle import BundleError, FleetBundle, JobKey
from models.bundle.job_models import closed_form_recovery_s
from models.capacity.conformal import LEVELS
from models.recovery.intervals import error_scale, standardise_errors
from models.recovery.labels import count_load_per_s, find_catch_up_s
from models.topology import source_capacity
from models.training.job_windows import KnownOperator
from spark_jobs.train.day_windows import JOB
from spark_jobs.train.training_events import NUMBERS

EVENTS_PER_TASK = 2_000


def predict_recoveries(
    context: SparkContext,
    events: pd.DataFrame,
    *,
    graphs: Mapping[JobKey, Sequence[KnownOperator]],
    shares: Mapping[JobKey, Mapping[str, float]],
    bundle: FleetBundle,
    caught_up_lag_s: float,
) -> pd.DataFrame:
    """Predict the recovery of each event beside the measured one (null: none), of jobs with a graph and with shares.

    The downtime is the event's ``downtime_before_s`` where it has one, which comes from the events before it; else the
    bundle's own.  The age of the checkpoint, what waited before the stop and the load are the event's own: a plan knows
    them from checkpoints, polls and the forecast. ``shares`` is how the load of each job divides over its sources.
    """
    keys = list(zip(events["cluster"], events["job"], strict=True))
    is_known = np.array([key in graphs and key in shares for key in keys], bool)
    known = events[is_known].reset_index(drop=True)
    jobs = list(zip(known["cluster"], known["job"], strict=True))
    of_jobs: dict[str, Any] = {"graph": [graphs[job] for job in jobs], "source_rates": [shares[job] for job in jobs]}
    rows = known.assign(**of_jobs)
    shared = context.broadcast(bundle)
    parts = [rows.iloc[begin : begin + EVENTS_PER_TASK] for begin in range(0, max(1, len(rows)), EVENTS_PER_TASK)]
    spread = context.parallelize(parts, len(parts))
    return pd.concat(
        spread.map(lambda part: predict_batch(shared.value, part, caught_up_lag_s)).collect(), ignore_index=True
    )


def predict_batch(bundle: FleetBundle, rows: pd.DataFrame, caught_up_lag_s: float) -> pd.DataFrame:
    """Return the rows of :func:`predict_recoveries` for events with ``graph`` and ``source_rates`` of their jobs."""
    replay_s = _replay_s(bundle, rows)
    column = {name: rows[name].to_numpy(float) for name in (*NUMBERS, "capacity_after_per_s")}
    loads = count_load_per_s(
        emitted=column["emitted_records"],
        pending=column["pending_records"],
        pending_before=column["pending_before_records"],
        since_stop_s=column["downtime_s"] + column["catch_up_s"],
        replay_s=np.where(rows["cause_kind"] == "upgrade", np.nan, replay_s),  # a savepoint tells of no position
        before_per_s=column["load_per_s"],
        after_per_s=column["load_after_per_s"],
    )
    waiting_s = np.nan_to_num(column["pending_before_records"] / loads)
    catch_up_s, resolution_s = find_catch_up_s(
        shown_s=column["catch_up_s"],
        unseen_s=column["unseen_s"],
        emitted=column["emitted_records"],
        pending=column["pending_records"],
        load_per_s=loads,
        capacity_per_s=column["capacity_after_per_s"],
        caught_up_lag_s=caught_up_lag_s,
    )
    result = [
        _predict(bundle, row, load_per_s, behind_s - caught_up_lag_s)  # caught up means a small backlog, not none
        for row, load_per_s, behind_s in zip(rows.to_dict("records"), loads, replay_s + waiting_s, strict=True)
    ]
    predicted_s, downtime_s, observed_before, utilisation, factor_80, factor_95 = (
        np.array(result, float).reshape(-1, 6).T
    )
    observed_s = column["downtime_s"] + catch_up_s
    scale = error_scale(predicted_s, downtime_s, utilisation, observed_before)
    return rows[[*JOB, "kind", "cause_kind", "started_at"]].assign(
        resolution_s=resolution_s,
        seen_s=observed_s,
        predicted_s=predicted_s,
        standardised=standardise_errors(observed_s, predicted_s, scale),
        factor_80=factor_80,
        factor_95=factor_95,
        sd_log=scale,
    )


def _predict(
    bundle: FleetBundle, event: dict[Any, Any], load_per_s: float, behind_s: float
) -> tuple[float, float, float, float, float, float]:
    """Return recovery, downtime, from how many, utilisation and interval factors of one event; NaN: it cannot be said.

    ``behind_s``: seconds of input to catch up with besides those of the downtime.
    """
    unknown = (float("nan"),) * 6
    try:
        models = bundle.for_job(event["cluster"], event["job"])
        nodes = [Operator(one.name, one.upstream) for one in event["graph"]]
        graph = JobGraph.from_operators(nodes)
        ratios = models.edge_ratios(graph)
    except (BundleError, GraphError):
        return unknown
    # How the load divides over the sources changes in the course of a day: that of the event, else the usual one.
    rates = dict(event.get("source_load_per_s") or event["source_rates"])
    parallelism = dict(event["parallelism_after"])
    capacity = {
        name: float(curve.mean_per_s[parallelism[name] - 1])
        for name, curve in models.capacity.items()
        if name in graph.names and 1 <= parallelism.get(name, 0) <= len(curve.mean_per_s)
    }
    total = sum(rates.get(source, 0.0) for source in graph.sources)
    if not capacity or not total or not np.isfinite(load_per_s):
        return unknown
    mix = {source: rates.get(source, 0.0) / total for source in graph.sources}
    sustained = source_capacity(graph, ratios, mix, capacity)
    recovery = models.recovery
    downtime_s, observed_before = (event.get(name, float("nan")) for name in ("downtime_before_s", "downtimes_before"))
    if not np.isfinite(downtime_s):
        observed_before = recovery.events
        downtime_s = recovery.downtime_s(event["cause_kind"], float(event["state_size_bytes"]))
    whole_s = closed_form_recovery_s(downtime_s, behind_s, load_per_s, sustained)
    recovery_s = max(float(whole_s), float(downtime_s))
    utilisation = load_per_s / sustained
    return recovery_s, float(downtime_s), float(observed_before), utilisation, recovery.factor_80, recovery.factor_95


def _replay_s(bundle: FleetBundle, rows: pd.DataFrame) -> Floats:
    """Return (n,) s of input that are read a second time: after a failure, those since the checkpoint."""
    own = rows["checkpoint_age_s"].to_numpy(float)
    is_replayed = (rows["kind"] == "restart") & (rows["cause_kind"] != "upgrade")
    usual = [_usual_age_s(bundle, *job) for job in rows[list(JOB)].itertuples(index=False, name=None)]
    return np.where(is_replayed, np.where(np.isfinite(own), own, usual), 0.0)


def _usual_age_s(bundle: FleetBundle, cluster: str, job: str) -> float:
    try:
        return bundle.for_job(cluster, job).recovery.checkpoint_interval_s
    except BundleError:
        return float("nan")


def recovery_errors(recoveries: pd.DataFrame) -> Floats:
    """Return the relative error of each event, (n,), NaN where recovery was not measured or is not predicted to end.

    Where the records do not tell when a catch-up ended between two samples, the true recovery lies within the
    resolution before what was seen: a prediction in that range has no error.
    """
    observed, predicted, resolution = (
        recoveries[name].to_numpy(float) for name in ("seen_s", "predicted_s", "resolution_s")
    )
    known = np.isfinite(observed) & np.isfinite(predicted) & (observed > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        beyond = np.maximum(predicted - observed, 0.0) + np.maximum(observed - resolution - predicted, 0.0)
        return np.asarray(np.where(known, beyond / observed, np.nan), float)


def is_inside(recoveries: pd.DataFrame, level: float) -> Floats:
    """Return (n,) 1 where an event lies inside the bundle's interval of a level, 0 outside, NaN without either."""
    error = recoveries["standardised"].to_numpy(float)
    factor = recoveries["factor_80" if level == LEVELS[0] else "factor_95"].to_numpy(float)
    return np.asarray(np.where(np.isfinite(error), error <= factor, np.nan), float)
