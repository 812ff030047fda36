"""A recorded plan made again from the versions that its rows carry, to see that it is the same, bit for bit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.settings import Cluster, Planner, Settings
from include.settings.limits import JobLimits
from include.settings.retired import drop_retired
from include.stage_names import Stage
from include.tables import PLANS
from include.version import stage_version
from models.bundle.fleet_bundle import FleetBundle
from spark_jobs.lake import Lake
from spark_jobs.model_store import ModelStore
from spark_jobs.plan.build_plan import build_plan
from spark_jobs.timestamps import as_of_slice


class NotRecordedError(RuntimeError):
    """There is no plan of that moment, or it does not carry the versions; the message says which."""


@dataclass(frozen=True, slots=True)
class RemakeResult:
    """What came of making a plan again.

    Attributes:
        rows: of the recorded plan.
        same: of them that were made again exactly.
        code_version: with which its first row was recorded.
        code_version_now: with which that row is made now.
    """

    rows: int
    same: int
    code_version: str
    code_version_now: str


def make_again(lake: Lake, settings: Settings, as_of: datetime) -> RemakeResult:
    """Make a recorded plan again and compare; nothing is written.

    Raises:
        NotRecordedError: there is no such plan, or one of an earlier release.
    """
    plan = lake.read(PLANS).where(as_of_slice(as_of))
    first = plan.first()
    if first is None:
        raise NotRecordedError(f"gold.plans holds no plan as of {as_of:%Y-%m-%dT%H:%M:%SZ}; see its as_of column")
    if first["input_versions"] is None:
        raise NotRecordedError("the plan carries no input_versions: it was made by an earlier release")
    shaped = drop_retired(json.loads(first["settings"]))
    then = settings.model_copy(
        update={
            "planner": Planner(**shaped["planner"]),
            "policies": shaped["policies"],
            "clusters": {name: Cluster(**cluster) for name, cluster in shaped["clusters"].items()},
            "limits": settings.limits.model_copy(
                update={"jobs": {job: JobLimits(priority=one) for job, one in shaped.get("priorities", {}).items()}}
            ),
        }
    )
    bundle = _bundle(settings, first["model_version"])
    made = build_plan(lake, then, as_of, bundle, dict(first["input_versions"])).plans
    content = [name for name in PLANS.columns if name != "code_version"]

    def lines(rows: DataFrame) -> list[str]:
        return sorted(row["line"] for row in rows.select(F.to_json(F.struct(*content)).alias("line")).collect())

    before, again = lines(plan), lines(made)
    differing, policy = set(before) ^ set(again), first["policy"]
    return RemakeResult(
        rows=len(before),
        same=len(before) - len(differing),
        code_version=str(first["code_version"]),
        code_version_now=stage_version(Stage.PLAN, [policy] if policy else []),
    )


def _bundle(settings: Settings, model_version: str | None) -> FleetBundle | None:
    if model_version is None:
        return None
    result = ModelStore(settings.mlflow).load_version(model_version)
    if result is None:
        raise NotRecordedError(f"model {model_version} is not in {settings.mlflow.tracking_uri} any more")
    return result
