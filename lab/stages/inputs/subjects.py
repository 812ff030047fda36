"""Jobs with their load history, as policies are replayed on them: rows of Spark, and what each becomes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.domain.graph import GraphError, JobGraph
from include.settings import Settings
from lab.backtest.subject import BIN_S, DAY_BINS, Subject
from lab.replay.rate_series import fill_gaps
from lab.stages.inputs.newest_rows import read_graphs
from lab.stages.inputs.source_series import WINDOWS, SourceWindows, read_source_loads, source_series
from models.arrays import Floats
from models.bundle.fleet_bundle import FleetBundle
from spark_jobs.lake import Lake
from spark_jobs.newest_rows import JOB
from spark_jobs.plan_inputs.job_state import limited_graph_of, placed_of
from spark_jobs.source_inputs.renames import follow_renames, read_renames
from spark_jobs.source_inputs.source_windows import HistoryBins


class NoLoadError(ValueError):
    """A source whose load was never measured; the message names it."""


def history_frame(settings: Settings, as_of: datetime) -> HistoryBins:
    """Return the frame of the history: whole bins of the replay up to ``as_of``, as far as training looks back."""
    end_s = int(as_of.timestamp() // BIN_S) * BIN_S
    bins = settings.training.lookback_days * DAY_BINS
    return HistoryBins(
        as_of_s=float(end_s),
        first_bin_s=end_s - bins * BIN_S,
        bin_s=BIN_S,
        history_bins=bins,
    )


def subjects(lake: Lake, frame: HistoryBins, as_of: datetime) -> DataFrame:
    """Return one row per job: its operators as JSON, null where no graph is known, and the rates of its sources."""
    renames = read_renames(lake, datetime.fromtimestamp(frame.first_bin_s, UTC), as_of)
    series = source_series(follow_renames(read_source_loads(lake, frame), renames), frame)
    source = F.struct("operator", *WINDOWS)
    sources = series.groupBy(*JOB).agg(F.collect_list(source).alias("sources"))
    return read_graphs(lake, as_of).join(sources, JOB, "right").select(*JOB, "operators", "sources")


def build_subject(settings: Settings, bundle: FleetBundle, frame: HistoryBins, state: Mapping[Any, Any]) -> Subject:
    """Return the job with its history from the first bin in which all of its sources are known to the last measured.

    Args:
        settings: of the run.
        bundle: models of the fleet.
        frame: of the history.
        state: a row of :func:`subjects`.

    Raises:
        BundleError: the bundle does not know the job.
        GraphError: the graph is not known or cannot be read.
        NoLoadError: a source was never measured.
    """
    cluster, job = state["cluster"], state["job"]
    if not isinstance(state["operators"], str):
        raise GraphError(
            f"its graph is not known: set clusters.{cluster}.rest_url, or save the reply of /jobs/<job id> in the "
            f"folder of clusters.{cluster}.prometheus.graphs"
        )
    operators = json.loads(state["operators"])
    graph = limited_graph_of(operators, settings.cluster(cluster), job)
    models = bundle.for_job(cluster, job, placed_of(operators))
    rates = _rates(graph, state["sources"], frame)
    known = np.isfinite(rates)
    begin, end = int(known.argmax(axis=0).max()), len(known) - int(known[::-1].any(axis=1).argmax())
    filled = np.stack([fill_gaps(column, BIN_S) for column in rates[begin:end].T], axis=1)
    slots_max = settings.cluster(cluster).slots_max
    return Subject(cluster, job, graph, models, slots_max, frame.first_bin_s + begin * BIN_S, filled)


def _rates(graph: JobGraph, sources: Sequence[Any], frame: HistoryBins) -> Floats:
    """Return (T, S) mean rates, NaN where nothing was measured; sources that the graph no longer has are left out."""
    windows = {one["operator"]: SourceWindows.of(*(one[name] for name in WINDOWS)) for one in sources}
    observed = {name: own.select_measured(frame).average_in_bins(frame) for name, own in windows.items()}
    silent = [name for name in graph.sources if name not in observed or not np.isfinite(observed[name]).any()]
    if silent:
        raise NoLoadError(f"no rate was measured at {silent}")
    return np.stack([observed[name] for name in graph.sources], axis=1)
