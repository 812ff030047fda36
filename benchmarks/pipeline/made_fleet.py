"""Tables of a made-up fleet as ingestion, planning and the controller write them, for what reads them without Spark.

Every job is a chain that runs at eight slots; its load has a daily wave of its own. The last job is late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from controller.log.control_log import LogEntry, Provenance
from controller.log.log_codec import row_of
from include.arrow_rows import arrow_schema
from include.lake_table import LakeTable, timestamp_of
from include.tables import CONTROL_LOG, FORECASTS, MODEL_VERSIONS, OBSERVATIONS, OPERATOR_KEYS, PLANS, QUALITY, Table
from models.control.case import Case
from models.control.history import advance_history
from models.control.limits import Limits
from models.control.reconcile import reconcile
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin

CLUSTER, VERTEX = "fleet", f"{1:032x}"
WINDOW_S, BIN_S, STEPS = 300, 300, 6
LATE_MS = 900_000.0


@dataclass(frozen=True, slots=True)
class Size:
    """How large the fleet is.

    Attributes:
        jobs: number of jobs.
        operators: of each.
        hours: of measured windows.
        log_rows: rows of the control log, over the same time.
        forecast_hours: so long back there are hourly forecasts and plans.
        has_late_job: whether the last job is late in the last hour.
    """

    jobs: int
    operators: int
    hours: int
    log_rows: int
    forecast_hours: int
    has_late_job: bool = True


def job_name(place: int) -> str:
    """Return the name of a job."""
    return f"job-{place:04}"


def write_fleet(lake: str, size: Size, end: datetime) -> None:
    """Write all tables; ``end`` is the hour at which the newest plan was made."""
    for back in range(size.hours, 0, -1):
        _append(
            lake, OBSERVATIONS, observations(size, end - timedelta(hours=back), is_late=back == 1 and size.has_late_job)
        )
    for back in range(size.forecast_hours, -1, -1):
        as_of = end - timedelta(hours=back)
        _append(lake, FORECASTS, forecasts(size, as_of))
        LakeTable(lake, PLANS).append(list(plans(size, as_of)))
    days: dict[Any, list[dict[str, Any]]] = {}
    for row in log_rows(size, end):
        days.setdefault(row["date"], []).append(row)
    for rows in days.values():
        LakeTable(lake, CONTROL_LOG).append(rows)
    LakeTable(lake, QUALITY).append(
        [
            {"interval_start": at, "interval_end": at + timedelta(hours=1), "cluster": CLUSTER, "rows": size.jobs}
            for at in (end - timedelta(hours=back) for back in range(size.hours, 0, -1))
        ]
    )
    noted = {"cluster": CLUSTER, "operator": "Source: events", "vertex_id": VERTEX, "position": 0, "upstream": []}
    noted |= {"observed_at": end, "date": end.date(), "hour": end.hour}
    LakeTable(lake, OPERATOR_KEYS).append([{**noted, "job": job_name(place)} for place in range(size.jobs)])
    trained = {"as_of": end - timedelta(hours=3), "model_version": "made-up", "gate": "passed", "gate_detail": ""}
    LakeTable(lake, MODEL_VERSIONS).append([trained])


def load_per_s(places: np.ndarray, at: datetime) -> np.ndarray:
    """Return the load of jobs at a time."""
    hours = at.timestamp() / 3600
    return np.asarray(5_000.0 + 3_500.0 * np.sin(2 * np.pi * (hours / 24 + 0.1 * (places % 7))))


def observations(size: Size, hour: datetime, *, is_late: bool) -> pa.Table:
    """Return the windows of an hour."""
    starts = [hour + timedelta(seconds=WINDOW_S * one) for one in range(3600 // WINDOW_S)]
    jobs, operators, windows = size.jobs, size.operators, len(starts)
    job, operator, window = (one.ravel() for one in np.indices((jobs, operators, windows)))
    rate = np.stack([load_per_s(np.arange(jobs), at) for at in starts], axis=1)[job, window]
    is_source = operator == 0
    waits = is_source & (job == jobs - 1) & is_late
    names = pa.array([job_name(one) for one in range(jobs)])
    stages = pa.array(["Source: events", *(f"stage-{one}" for one in range(1, operators))])
    count = len(job)
    columns: dict[str, Any] = {
        "cluster": pa.repeat(CLUSTER, count),
        "job": names.take(pa.array(job)),
        "job_id": pa.repeat("a" * 32, count),
        "operator": stages.take(pa.array(operator)),
        "window_start": pa.array([int(one.timestamp() * 1e6) for one in starts]).take(pa.array(window)),
        "window_s": np.full(count, WINDOW_S),
        "parallelism": np.full(count, 8),
        "is_source": is_source,
        "observed_processing_rate_per_s": rate,
        "true_processing_rate_per_s": np.full(count, 10_000.0),
        "target_data_rate_per_s": pa.array(rate, mask=~is_source),
        "busy_share": rate / 10_000.0,
        "pending_records": pa.array(np.where(waits, 4.2e6, 100.0), mask=~is_source),
        "age_s": pa.array(np.where(waits, LATE_MS / 1000.0, 0.02), mask=~is_source),
        "samples": np.full(count, 5),
        "disturbed": np.zeros(count, bool),
        "date": pa.repeat(hour.date(), count),
        "hour": np.full(count, hour.hour),
    }
    return complete_table(OBSERVATIONS, columns, count)


def forecasts(size: Size, as_of: datetime) -> pa.Table:
    """Return a day of forecasts of all jobs."""
    bins = [as_of + timedelta(seconds=BIN_S * one) for one in range(86_400 // BIN_S)]
    job, place = (one.ravel() for one in np.indices((size.jobs, len(bins))))
    mean = np.stack([load_per_s(np.arange(size.jobs), at) for at in bins], axis=1)[job, place]
    names, count = pa.array([job_name(one) for one in range(size.jobs)]), len(job)
    columns = {
        "as_of": pa.repeat(int(as_of.timestamp() * 1e6), count),
        "cluster": pa.repeat(CLUSTER, count),
        "job": names.take(pa.array(job)),
        "operator": pa.repeat("Source: events", count),
        "bin_start": pa.array([int(one.timestamp() * 1e6) for one in bins]).take(pa.array(place)),
        "bin_s": np.full(count, BIN_S),
        "q10_per_s": 0.9 * mean,
        "q50_per_s": mean,
        "q90_per_s": 1.1 * mean,
        "q95_per_s": 1.15 * mean,
        "method": pa.repeat("made", count),
        "date": pa.repeat(as_of.date(), count),
    }
    return complete_table(FORECASTS, columns, count)


def plans(size: Size, as_of: datetime) -> Iterator[dict[str, Any]]:
    """Yield the rows of a plan: some steps of each job over a day."""
    for place in range(size.jobs):
        for step in range(STEPS):
            effective = as_of + timedelta(hours=24 / STEPS * step + 0.25)
            slots = 6 + (place + step) % 5
            yield {
                "as_of": as_of,
                "step_id": f"{place:04}{step}{int(as_of.timestamp()) // 3600}",
                "cluster": CLUSTER,
                "job": job_name(place),
                "job_id": f"{place:032x}",
                "step_index": step,
                "status": "planned",
                "apply_at": effective - timedelta(minutes=2),
                "effective_at": effective,
                "valid_until": effective + timedelta(hours=24 / STEPS),
                "parallelism_from": {"Source: events": 8},
                "parallelism_to": {"Source: events": slots},
                "slots_from": 8,
                "slots": slots,
                "expected_load_q50_per_s": 5_000.0,
                "expected_load_q90_per_s": 5_600.0,
                "expected_capacity_per_s": 1_000.0 * slots,
                "expected_capacity_lower_per_s": 900.0 * slots,
                "expected_capacity_upper_per_s": 1_100.0 * slots,
                "expected_late_minutes": place % 17 / STEPS,
                "day_late_minutes": float(place % 17),
                "slot_hours_saved": 1.5,
                "safer_parallelism": {"Source: events": slots + 1},
                "safer_slots": slots + 1,
                "safer_slot_hours_more": 24.0 / STEPS,
                "safer_late_minutes": 0.0,
                "cheaper_parallelism": {"Source: events": slots - 1},
                "cheaper_slots": slots - 1,
                "cheaper_slot_hours_more": -24.0 / STEPS,
                "cheaper_late_minutes": 3.0 + place % 17 / STEPS,
                "reason": f"load q90 is up to 5.6k/s; Source: events needs {slots} instead of 8; saves 1.5 slot-hours",
                "policy": "made",
                "model_version": "made-up",
                "date": as_of.date(),
            }


def log_rows(size: Size, end: datetime) -> Iterator[dict[str, Any]]:
    """Yield rows of the control log: decisions of all jobs in turn, each tenth of a job a request and its answer.

    The controller decides once for each turn, and the jobs of a turn have that row under their names.
    """
    first_s, length_s = end.timestamp() - 3600 * size.hours, 3600.0 * size.hours
    entries, decided = [0] * size.jobs, dict[tuple[int, bool], list[dict[str, Any]]]()
    for made in range(size.log_rows):
        turn, place = divmod(made, size.jobs)
        at_s, is_request = first_s + length_s * made / size.log_rows, turn % 10 == place % 10
        if (turn, is_request) not in decided:
            decided[turn, is_request] = [row_of(one, 1, 0, "made-up") for one in _entries(at_s, is_request)]
        for row in decided[turn, is_request]:
            entries[place] += 1
            at = timestamp_of(at_s + 0.5 * bool(row["answer"]))
            yield row | {
                "job": job_name(place),
                "at": at,
                "entry": entries[place],
                "decided_at_s": at_s,
                "date": at.date(),
            }


def _entries(at_s: float, is_request: bool) -> list[LogEntry]:
    """Return a decision, and the answer where it is a request."""
    names = {f"{one}" * 32: name for one, name in enumerate(("Source: events", "stage-1", "stage-2"))}
    runs = dict.fromkeys(names, 8)
    wanted = Intention(dict.fromkeys(names, 9), Origin.PLAN, f"step-{at_s:.0f}", "load rises to 5.6k/s", at_s + 600)
    case = Case(
        now_s=at_s,
        desired=wanted if is_request else None,
        observed=ObservedJob("j", "RUNNING", runs, runs, free_slots=8),
        history=JobHistory(job_id="j", known_requested=runs),
        limits=Limits(mode=Mode.AUTO),
    )
    action = reconcile(case)
    history = advance_history(case, action)
    entry = LogEntry(f"{CLUSTER}/{job_name(0)}", case, action, history, provenance=Provenance(names, at_s))
    return [entry, replace(entry, answer="accepted", answered_at_s=at_s + 0.5)] if entry.sends else [entry]


def complete_table(table: Table, columns: dict[str, Any], count: int) -> pa.Table:
    """Return rows of a table; a column that is not given is null."""
    schema = arrow_schema(table)
    made = []
    for field in schema:
        values = columns.get(field.name)
        if values is None:
            made.append(pa.nulls(count, field.type))
        else:
            made.append((values if isinstance(values, pa.Array) else pa.array(values)).cast(field.type))
    return pa.table(made, schema=schema)


def _append(lake: str, table: Table, rows: pa.Table) -> None:
    LakeTable(lake, table).append_arrow(rows)


def hour_before(now_s: float) -> datetime:
    """Return the last full hour."""
    return timestamp_of(now_s // 3600 * 3600)
