"""The pipeline over what was recorded of all versions: ingest, train, forecast, plan in one Spark application."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from deltalake import DeltaTable
from rich.console import Console

from benchmarks.versions.one_version import cluster_name
from benchmarks.versions.results import Results
from benchmarks.versions.run_settings import VersionSettings
from cli.progress import ProgressLog
from include.settings import load_settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.tables import OBSERVATIONS, PLANS, RESCALES
from include.tables.schema import Table
from include.utc import ceil_hour, floor_hour
from lab.commands.spark_application import run_application

_STAGES = (Stage.INGEST, Stage.TRAIN, Stage.FORECAST, Stage.PLAN)


def plan_versions(settings: VersionSettings, versions: Sequence[str], began: datetime, results: Results) -> None:
    """Run the pipeline on the raw files of a run, and note per version what silver and the plans say."""
    as_of = datetime.now(UTC)
    hours = floor_hour(began), ceil_hour(as_of)
    with _environment(settings):
        requests = [StageRequest(stage, as_of, *hours) for stage in _STAGES]
        run_application(
            load_settings(),
            requests,
            settings.out / "pipeline.log",
            ProgressLog(Console(), {str(stage): str(stage) for stage in _STAGES}),
        )
    observed, rescales, plans = (_read(settings, table) for table in (OBSERVATIONS, RESCALES, PLANS))
    for version in versions:
        name = cluster_name(version)
        windows = [row for row in observed if row["cluster"] == name and not row["disturbed"]]
        stops = [row for row in rescales if row["cluster"] == name]
        kinds = ", ".join(f"{row['kind']} down {_seconds(row['downtime_s'])}" for row in stops)
        planned = [row for row in plans if row["cluster"] == name]
        state = _describe_plan(planned)
        text = f"{len(windows)} undisturbed windows; {kinds}; plan: {state}"
        is_planned = bool(planned) and planned[0]["status"] != "refused"
        is_right = bool(windows) and {row["kind"] for row in stops} == {"rescale", "restart"} and is_planned
        results.note(version, "plan", text, is_right=is_right)


def _describe_plan(rows: Sequence[Mapping[str, object]]) -> str:
    if not rows:
        return "none"
    steps = [row for row in rows if row["status"] == "planned"]
    return f"{len(steps)} steps" if steps else f"{rows[0]['status']} {rows[0]['refusal'] or ''}".rstrip()


def _seconds(value: object) -> str:
    return f"{value:.1f} s" if isinstance(value, float) else "unknown"


def _read(settings: VersionSettings, table: Table) -> list[dict[str, object]]:
    location = str(settings.out / "lake" / table.relative_path)
    rows: list[dict[str, object]] = DeltaTable(location).to_pyarrow_table().to_pylist()
    return rows


@contextmanager
def _environment(settings: VersionSettings) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(settings.environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
