"""``python -m tools.worked_example``: the path of one raw line to a request, with the figures of the last `make run`.

It prints ``docs/worked_example.md``.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from cli.arguments import CommandParser, folder
from cli.embedded import below
from include.flink.endpoints import requirements_body
from include.settings import PROJECT, Settings, load_settings
from include.tables import BRONZE_METRICS, CONTROL_LOG, FORECASTS, JOB_GRAPHS, OBSERVATIONS, PLANS, Table
from models.bundle.job_models import CapacityCurve
from spark_jobs.lake import Lake
from spark_jobs.model_store import load_bundle
from spark_jobs.session import start_session

TEMPLATE = "worked_example.md.j2"
RECORDED = {"cluster": "recorded", "job": "orders"}
SHOWN = ("numRecordsIn", "numRecordsOut", "accumulateBusyTimeMs", "busyTimeMsPerSecond")
_CURVE_POINTS = 4


class NothingToShowError(RuntimeError):
    """The tables hold no such row; the message says what to run first."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The lake, and rows of the recorded job."""

    lake: Lake

    def of_job(self, table: Table) -> DataFrame:
        """Return the rows of the recorded job."""
        return self.lake.read(table).where(" AND ".join(f"{key} = '{value}'" for key, value in RECORDED.items()))

    def first(self, rows: DataFrame, what: str) -> Row:
        """Return the first row.

        Raises:
            NothingToShowError: there is none.
        """
        result = rows.first()
        if result is None:
            raise NothingToShowError(f"{self.lake.root} holds no {what}: run `make run` first, or pass its --out")
        return result


def format_number(value: float | None) -> str:
    """Write a number for a person: thousands separated, three significant digits of small ones."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.4g}"


def format_time(timestamp: datetime) -> str:
    """Write a time of day to the millisecond."""
    return timestamp.strftime("%H:%M:%S.%f")[:-3] if timestamp.microsecond else timestamp.strftime("%H:%M:%S")


def describe_differences(before: Row, after: Row) -> list[dict[str, str]]:
    """Return the counters of two bronze rows and what they grew by, as table rows."""
    rows = []
    for name in SHOWN[:3]:
        was, now = sum_of(before, name), sum_of(after, name)
        figures = {"before": was, "after": now, "difference": now - was}
        rows.append({"name": f"`{name}`"} | {key: format_number(value) for key, value in figures.items()})
    elapsed_s = (after["observed_at"] - before["observed_at"]).total_seconds()
    times = {"before": format_time(before["observed_at"]), "after": format_time(after["observed_at"])}
    return [*rows, {"name": "time", **times, "difference": f"{elapsed_s:.3f} s"}]


def sum_of(row: Row, name: str) -> float:
    """Return the sum over subtasks of a metric of a bronze row."""
    return float(next(metric["sum"] for metric in row["metrics"] if metric["id"] == name))


def describe_curve(curve: CapacityCurve) -> list[dict[str, str]]:
    """Return the first points of a capacity curve as table rows."""
    observed = dict(zip(curve.observed.tolist(), curve.observed_per_s.tolist(), strict=True))
    points = zip(curve.parallelism.tolist(), curve.mean_per_s.tolist(), curve.sd_per_s.tolist(), strict=True)
    return [
        {"parallelism": p, "seen": format_number(observed.get(p)), "mean": format_number(mean), "sd": format_number(sd)}
        for p, mean, sd in list(points)[:_CURVE_POINTS]
    ]


def find_raw_line(raw: Path, row: Row) -> tuple[str, int]:
    """Return the raw line of a bronze row, its body cut to the shown metrics, and how many metrics it had.

    Raises:
        NothingToShowError: the raw file is not there any more.
    """
    path = raw / str(row["source_file"])
    if not path.is_file():
        raise NothingToShowError(f"{path} is not there any more")
    at_ms = round(row["observed_at"].timestamp() * 1000)
    with gzip.open(path, "rt") as lines:
        for line in map(json.loads, lines):
            if line["observed_at_ms"] == at_ms and line["vertex_id"] == row["vertex_id"]:
                metrics = json.loads(line["body"])
                retained = [metric for metric in metrics if metric["id"] in SHOWN]
                line["endpoint"] = line["endpoint"].split("?")[0] + "?..."
                line["body"] = json.dumps(retained, separators=(",", ":"))
                return json.dumps(line), len(metrics)
    raise NothingToShowError(f"{path} holds no line of {at_ms}")


def describe_measurement(tables: Tables, raw: Path) -> dict[str, Any]:
    """Return what the page says of the raw line, its bronze row and its observation."""
    undisturbed = tables.of_job(OBSERVATIONS).where("NOT disturbed AND busy_share > 0 AND NOT is_source")
    busiest = undisturbed.orderBy(F.desc("parallelism"), "window_start", "operator")
    observed = tables.first(busiest, "undisturbed observation of the recording")
    end = f"timestamp_millis({round(1000 * (observed['window_start'].timestamp() + observed['window_s']))})"
    start = f"timestamp_millis({round(1000 * observed['window_start'].timestamp())})"
    samples = (
        tables.lake.read(BRONZE_METRICS)
        .where(f"job_id = '{observed['job_id']}' AND vertex_id = '{observed['vertex_id']}'")
        .orderBy(F.desc("observed_at"))
    )
    last = tables.first(samples.where(f"observed_at < {end}"), "sample in the window")
    before = tables.first(samples.where(f"observed_at < {start}"), "sample before the window")
    line, metrics = find_raw_line(raw, last)
    elapsed_s = (last["observed_at"] - before["observed_at"]).total_seconds()
    records = sum_of(last, SHOWN[0]) - sum_of(before, SHOWN[0])
    busy_ms = (sum_of(last, SHOWN[2]) - sum_of(before, SHOWN[2])) / observed["parallelism"]
    return {
        **RECORDED,
        "operator": observed["operator"],
        "raw_line": line,
        "raw_metrics": metrics,
        "source_file": last["source_file"],
        "before": {"observed_at": format_time(before["observed_at"])},
        "differences": describe_differences(before, last),
        "hand": {
            "records": format_number(records),
            "seconds": f"{elapsed_s:.3f}",
            "busy_ms": format_number(busy_ms),
        },
        "observation": {
            "window_s": observed["window_s"],
            "window_start": format_time(observed["window_start"]),
            "parallelism": observed["parallelism"],
            "processing": format_number(observed["observed_processing_rate_per_s"]),
            "busy": format_number(observed["busy_share"]),
            "true_processing": format_number(observed["true_processing_rate_per_s"]),
            "disturbed": str(observed["disturbed"]).lower(),
        },
    }


def describe_decision(tables: Tables, settings: Settings, operator: str) -> dict[str, Any]:
    """Return what the page says of the curve, the forecast, the plan and the request."""
    plan = tables.first(tables.of_job(PLANS).orderBy(F.desc("as_of"), "step_index"), "plan of the recording")
    ahead = tables.of_job(FORECASTS).where(F.col("forecast_version") == plan["forecast_version"])
    forecast = tables.first(ahead.orderBy("bin_start"), "forecast of the recording")
    due = tables.lake.read(PLANS).where((F.col("as_of") == plan["as_of"]) & (F.col("status") == "planned"))
    logged = tables.lake.read(CONTROL_LOG).where((F.col("verb") == "rescale") & F.col("is_dry_run"))
    decided_on = due.join(logged.select("step_id"), "step_id", "left_semi")
    step = tables.first(decided_on.orderBy("apply_at", "cluster", "job"), "planned step that was decided on")
    entries = logged.where(F.col("step_id") == step["step_id"])
    decided = tables.first(entries.orderBy("lease_number", "entry"), "decision on the first step")
    curve = load_bundle(settings).for_job(RECORDED["cluster"], RECORDED["job"]).capacity[operator]
    quantiles = {name: format_number(forecast[f"{name}_per_s"]) for name in ("q10", "q50", "q90", "q95")}
    return {
        "curve": describe_curve(curve),
        "forecast": {
            "operator": forecast["operator"],
            "minutes": forecast["bin_s"] // 60,
            "bin_start": format_time(forecast["bin_start"]),
            "method": forecast["method"],
            "fallback": forecast["fallback_reason"],
            **quantiles,
        },
        "plan": {
            "status": plan["status"],
            "model_version": plan["model_version"],
            "parallelism_to": json.dumps(dict(sorted(plan["parallelism_to"].items()))),
            "q50": format_number(plan["expected_load_q50_per_s"]),
            "q90": format_number(plan["expected_load_q90_per_s"]),
            "capacity": format_number(plan["expected_capacity_per_s"]),
            "reason": plan["reason"],
        },
        "step": {
            "cluster": step["cluster"],
            "job": step["job"],
            "apply_at": format_time(step["apply_at"]),
            "verb": decided["verb"],
            "decided_at": format_time(decided["at"]),
        },
        "request": describe_request(tables, step),
    }


def describe_request(tables: Tables, step: Row) -> dict[str, str]:
    """Return path and body of the request that a step becomes."""
    graph = tables.lake.read(JOB_GRAPHS).where(F.col("job_id") == step["job_id"])
    vertices = {row["operator"]: row["vertex_id"] for row in graph.orderBy("observed_at").collect()}
    bounds: Mapping[str, int] = {vertices[name]: number for name, number in step["parallelism_to"].items()}
    lines = [f'"{vertex}": {json.dumps(bound)}' for vertex, bound in requirements_body(bounds).items()]
    return {"path": f"/jobs/{step['job_id']}/resource-requirements", "body": "{" + ",\n ".join(lines) + "}"}


def render(values: Mapping[str, Any]) -> str:
    """Return the page."""
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    return environment.get_template(TEMPLATE).render(values)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the page; returns the exit code."""
    parser = CommandParser(prog="worked_example", description=__doc__)
    parser.add_argument("--out", type=folder, default=PROJECT / "out", help="where `make run` has written")
    os.environ.update(below(parser.parse_args(argv).out) | {"TZ": "UTC"})
    settings = load_settings()
    spark = start_session(settings, "worked-example")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        tables = Tables(Lake(spark, settings.paths.lake))
        measured = describe_measurement(tables, Path(settings.paths.raw))
        page = render(measured | describe_decision(tables, settings, measured["operator"]))
    except NothingToShowError as error:
        print(f"worked example: {error}", file=sys.stderr)
        return 2
    finally:
        spark.stop()
    sys.stdout.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
