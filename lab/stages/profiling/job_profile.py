"""Profiling one job."""

from __future__ import annotations

import json
import logging
import math
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import pandas as pd
from pyspark.broadcast import Broadcast

from include.domain.graph import GraphError
from include.settings import Settings
from include.utc import format_utc
from lab.profiling.journal import Journal
from lab.profiling.profiling import profile, profiling_options
from lab.simulation.spec import SpecError
from lab.stages.inputs.skipped_jobs import ProfilingSkip
from lab.stages.profiling.adapters import ProfiledSubject, adapter
from models.bundle.fleet_bundle import BundleError, FleetBundle
from models.policies.registry import memory_codec, policy
from spark_jobs.plan_inputs.job_state import graph_of, placed_of
from spark_jobs.plan_inputs.policy_memory import recall

log = logging.getLogger(__name__)
# A row is an entry of the journal, or the policy's memory, or says why there is neither.
ROW_SCHEMA = (
    "cluster STRING, job STRING, kind STRING, step INT, scale_out INT, rate_per_s DOUBLE, throughput_per_s DOUBLE, "
    "latency_ms DOUBLE, latency STRING, policy STRING, memory STRING, refusal STRING"
)
COLUMNS = [column.split()[0] for column in ROW_SCHEMA.split(", ")]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProfileTask:
    """Common inputs of every job's profiling; shipped to the executors once."""

    settings: Settings
    as_of: datetime
    bundle: Broadcast[FleetBundle]


def make_profiler(task: ProfileTask) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return the function that Spark applies to the state of each job."""

    def run(states: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(job_rows(task, states.iloc[0].to_dict()), columns=COLUMNS, dtype=object)

    return run


def job_rows(task: ProfileTask, state: dict[Any, Any]) -> list[Row]:
    """Return the rows of one job: what was measured and the policy's memory with it; or one with a refusal."""
    cluster, job = state["cluster"], state["job"]
    name = task.settings.planner.policy_of(cluster, job)
    shared: Row = {"cluster": cluster, "job": job, "policy": name}
    try:
        return [shared | row for row in _profile_row(task, state, name)]
    except (BundleError, SpecError):
        return [shared | {"refusal": str(ProfilingSkip.NO_MODEL)}]
    except GraphError:
        return [shared | {"refusal": str(ProfilingSkip.UNKNOWN_OPERATOR)}]
    except Exception:  # one job's deployments must not keep the others from theirs
        log.exception("profiling of %s/%s", cluster, job)
        return [shared | {"refusal": str(ProfilingSkip.PROFILING_FAILED)}]


def _profile_row(task: ProfileTask, state: dict[Any, Any], name: str) -> list[Row]:
    cluster, job, settings = state["cluster"], state["job"], task.settings
    slots_max = settings.cluster(cluster).slots_max
    load = state["worker_load_per_s"]
    if pd.isna(load) or not load > 0:
        return [{"refusal": str(ProfilingSkip.NO_LOAD)}]
    subject = ProfiledSubject(
        cluster=cluster,
        job=job,
        graph=graph_of(json.loads(state["operators"])),
        models=task.bundle.value.for_job(cluster, job, placed_of(json.loads(state["operators"]))),
        slots_max=slots_max,
        options=settings.planner.for_job(cluster, job),
        profiling=settings.profiling,
        seed=zlib.crc32(f"{cluster}/{job}/{format_utc(task.as_of)}".encode()),
    )
    journal = Journal(adapter(settings.profiling.adapter)(subject))
    result = profile(journal, profiling_options(settings.profiling, slots_max, float(load)), log.info)
    chosen = policy(name, settings.parameters_of(name, f"{cluster}/{job}"))
    before = recall(chosen, name, _text(state["memory"]), _text(state["memory_policy"]))
    measured = [{column: _finite(value) for column, value in asdict(entry).items()} for entry in journal.entries]
    return [*measured, {"memory": memory_codec(name).dump(replace(before, profile=result))}]


def _text(value: Any) -> str | None:
    return None if pd.isna(value) else str(value)


def _finite(value: Any) -> Any:
    """Return null for a figure that was not measured."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
