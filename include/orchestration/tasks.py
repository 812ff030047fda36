"""The steps that DAGs are made of: Spark stages with pool, retries and timeouts, and what every DAG has in common."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Param

from include.orchestration.assets import inlets, outlets
from include.orchestration.run_window import requested_as_of, requested_end, requested_start
from include.orchestration.stage_operator import StageOperator, report_failure
from include.stages import Stage

SPARK_POOL = "tidewise_spark"
COLLECT_POOL = "tidewise_collect"
# Name -> (slots, description). A Spark application takes a driver of its own: two at a time fit a small machine.
POOLS = {
    SPARK_POOL: (2, "Spark applications of Tidewise that run at the same time"),
    COLLECT_POOL: (1, "Pollers of Flink's REST API"),
}
OWNER = "tidewise"


def _timestamp(description: str) -> Param:
    return Param(None, description=description, type=["null", "string"], format="date-time")


AS_OF_PARAM = _timestamp("read the data as of this time (ISO 8601, UTC); default: the run's own")
JOB_PARAM = Param(
    None, description='"cluster/job"; default: every job whose policy uses a profile', type=["null", "string"]
)
INTERVAL_PARAMS = {
    "start": _timestamp("first full hour to ingest (ISO 8601, UTC); default: the data interval"),
    "end": _timestamp("end of the hours to ingest, exclusive"),
}
MACROS = {"start_of": requested_start, "end_of": requested_end, "as_of_of": requested_as_of}

_INTERVAL = "params, data_interval_start | default(none), data_interval_end | default(none)"
AS_OF = "{{ as_of_of(params, data_interval_end | default(none), dag_run) }}"


@dataclass(frozen=True, slots=True)
class StagePolicy:
    """How often a stage is retried, how long it may take and what goes first.

    Attributes:
        timeout: of one try; several times what the stage takes for a fleet of a thousand jobs.
        retries: a stage may always be run again, so a passing fault of storage or cluster costs only time.
        priority: weight in the pool: steps that are due must not wait for a training.
    """

    timeout: timedelta
    retries: int = 2
    priority: int = 1


POLICIES = {
    Stage.INGEST: StagePolicy(timedelta(minutes=60), retries=3),
    Stage.TRAIN: StagePolicy(timedelta(hours=3)),
    Stage.LEARN: StagePolicy(timedelta(hours=1)),
    Stage.FORECAST: StagePolicy(timedelta(minutes=30), priority=5),
    # On a real cluster a phase takes hours; a retry begins from the start.
    Stage.PROFILE: StagePolicy(timedelta(hours=3), retries=1),
    Stage.PLAN: StagePolicy(timedelta(minutes=30), priority=5),
    Stage.REPORT: StagePolicy(timedelta(minutes=15)),
    Stage.BACKTEST: StagePolicy(timedelta(hours=3)),
    Stage.WATCH: StagePolicy(timedelta(minutes=10), retries=1, priority=10),
    # A late step is worse than none: the next tick comes in five minutes anyway.
    Stage.APPLY: StagePolicy(timedelta(minutes=10), retries=1, priority=10),
}


def stage_step(stage: Stage, **options: Any) -> StageOperator:
    """Return the task that runs one Spark stage; its arguments are rendered from the run's parameters and interval.

    Args:
        stage: which.
        options: further arguments of the operator.
    """
    policy = POLICIES[stage]
    return StageOperator(
        stage=stage,
        task_id=str(stage),
        application_args=_arguments(stage),
        inlets=inlets(stage),
        outlets=outlets(stage),
        pool=SPARK_POOL,
        priority_weight=policy.priority,
        retries=policy.retries,
        execution_timeout=policy.timeout,
        **options,
    )


def _arguments(stage: Stage) -> list[str]:
    """Return what :meth:`include.stages.StageRequest.parse` reads, as templates."""
    if stage is Stage.INGEST:
        start, end = f"{{{{ start_of({_INTERVAL}) }}}}", f"{{{{ end_of({_INTERVAL}) }}}}"
        return [str(stage), "--as-of", end, "--start", start, "--end", end]
    if stage is Stage.PROFILE:
        return [str(stage), "--as-of", AS_OF, "--job={{ params.job or '' }}"]
    return [str(stage), "--as-of", AS_OF]


def dag_options(*tags: str) -> dict[str, Any]:
    """Return what every DAG of the project has in common."""
    return {
        "start_date": datetime(2024, 1, 1, tzinfo=UTC),  # no backfill reaches further back
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["tidewise", *tags],
        "user_defined_macros": MACROS,
        "default_args": {
            "owner": OWNER,
            "retries": 1,
            "retry_delay": timedelta(minutes=1),
            "retry_exponential_backoff": True,
            "max_retry_delay": timedelta(minutes=10),
            "on_failure_callback": report_failure,
        },
    }
