"""Loads of the last day and a half, for jobs of a policy that learns what a load does and does not know them yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from include.lake_table import LakeTable
from models.programme.load_paths import STEP_S
from spark_jobs.by_job import Columns, Job, split_columns
from spark_jobs.plan_inputs.windows_of_jobs import read_recent_windows
from spark_jobs.source_inputs.renames import OperatorName

PAST = timedelta(hours=36)
_JOB = ["cluster", "job"]
_RATES = ("target_data_rate_per_s", "processing_rate_per_s")


def read_past_loads(
    windows: LakeTable,
    as_of: datetime,
    new: Collection[Job],
    jobs: Sequence[Job],
    current: Mapping[OperatorName, str | None],
) -> list[Columns | None]:
    """Return of each job the number ``at`` of each step and its ``load_per_s``, None of one without any.

    A window in which one source shows neither what arrives nor what it takes in tells nothing. Read are the loads of
    the new jobs.
    """
    rows = read_recent_windows(windows, PAST, as_of, new, current, measures=_RATES, which="is_source")
    load = pc.coalesce(*(rows[name] for name in _RATES))
    end_s = pc.add(rows["window_start_s"], rows["window_s"])
    made = {"at": pc.divide(pc.subtract(end_s, 1), STEP_S), "load_per_s": load, "is_unknown": pc.is_null(load)}
    names = [*_JOB, "window_start_s", "operator"]
    each = pa.table({name: rows[name] for name in names} | made)
    # In one order, so that the same windows have the same sums whatever files they are in.
    ordered = each.sort_by([(name, "ascending") for name in names])
    of_windows = ordered.group_by([*_JOB, "window_start_s", "at"], use_threads=False)
    sums = of_windows.aggregate([("load_per_s", "sum"), ("is_unknown", "max")])
    of_steps = sums.filter(pc.invert(sums["is_unknown_max"])).group_by([*_JOB, "at"], use_threads=False)
    steps = of_steps.aggregate([("load_per_s_sum", "mean")]).sort_by("at")
    columns = {name: steps[name] for name in (*_JOB, "at")} | {"load_per_s": steps["load_per_s_sum_mean"]}
    return split_columns(pa.table(columns), ("at", "load_per_s"), jobs)
