"""The steps that DAGs are made of: Spark stages with pool, retries and timeouts, and what every DAG has in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Param

from include.orchestration.assets import application_inlets, application_outlets
from include.orchestration.parameters import refuse_at_once
from include.orchestration.pools import SPARK_POOL, UPKEEP_POOL
from include.orchestration.run_window import (
    controller_arguments,
    requested_as_of,
    requested_end,
    requested_start,
)
from include.orchestration.stage_operator import RUNBOOK, StageOperator, report_failure
from include.orchestration.task_states import remember_failure, remember_success
from include.orchestration.webhook_notifier import WebhookNotifier
from include.stage_catalogue import Span, stage_of
from include.stage_names import Stage

OWNER = "tidewise"
CHEAP_RETRIES = stage_of(Stage.INGEST).retries  # a slow worker makes no hour red whose data are in
UPKEEP: dict[str, Any] = {"pool": UPKEEP_POOL, "retries": 1, "execution_timeout": timedelta(hours=2)}


# Airflow checks these when a run is asked for, before anything is started. A full hour in UTC may be written with the
# half hours of some offsets.
_FULL_HOUR = (
    r"^\d{4}-\d\d-\d\dT\d\d:"
    r"(00(:00(\.0+)?)?(Z|[+-]\d\d:?00)?|(15|30|45)(:00(\.0+)?)?[+-]\d\d:?(15|30|45))$"
)


def _timestamp(description: str, **options: Any) -> Param:
    return Param(None, description=description, **{"type": ["null", "string"], "format": "date-time", **options})


def _hour(description: str) -> Param:
    return Param(description=description, type="string", format="date-time", pattern=_FULL_HOUR)


AS_OF_PARAM = _timestamp("read the data as of this time (ISO 8601, UTC); default: the run's own")
JOB_PARAM = Param(
    None,
    description='"cluster/job"; default: every job whose policy uses a profile',
    type=["null", "string"],
    pattern="^$|^[^/]+/.+$",
)
THEN_PLAN_PARAM = Param(False, description="make a plan as soon as the models are there", type="boolean")
DRY_RUN_PARAM = Param(False, description="only log what would be done", type="boolean")
FORCE_PARAM = Param(
    False,
    description="replace rows whose raw files are gone by what is left of them; else such a run is refused",
    type="boolean",
)
INTERVAL_PARAMS = {
    "start": _timestamp("first full hour to ingest (ISO 8601, UTC); default: the data interval", pattern=_FULL_HOUR),
    "end": _timestamp("end of the hours to ingest, exclusive, a full hour; with start", pattern=_FULL_HOUR),
    "force": FORCE_PARAM,
}
PAST_HOURS_PARAMS = {
    # No default: without hours there is nothing to do, and Airflow's page asks for them.
    "start": _hour("first full hour (ISO 8601, UTC)"),
    "end": _hour("end, exclusive, a full hour"),
    "force": FORCE_PARAM,
}
MACROS = {
    "start_of": refuse_at_once(requested_start),
    "end_of": refuse_at_once(requested_end),
    "as_of_of": refuse_at_once(requested_as_of),
    "controller_arguments_of": refuse_at_once(controller_arguments),
}
FAILURE_NOTIFIER = WebhookNotifier(f"its log in Airflow; {RUNBOOK}")

_INTERVAL = "params, data_interval_start | default(none), data_interval_end | default(none)"
_PAST = "--past={{ 'yes' if dag_run.run_type == 'backfill' else 'no' }}"
_FORCE = "--force={{ 'yes' if params.force else 'no' }}"
END = f"{{{{ end_of({_INTERVAL}) }}}}"
AS_OF = "{{ as_of_of(params, data_interval_end | default(none), dag_run) }}"


def stage_step(*stages: str, **options: Any) -> StageOperator:
    """Return the task that runs Spark stages, one after the other in one application.

    Its arguments are rendered from the run's parameters and interval.  It is tried as often as the least tried of its
    stages, as long as all of them may take, and as urgent as the most urgent.
    """
    chosen = {"task_id": "_".join(stages), **_task_options(stages), **options}
    return StageOperator(application_args=_arguments(stages), **chosen)


def stage_steps(stage: str, arguments: Any, **options: Any) -> Any:
    """Return tasks that run a stage one after the other, one for each list of arguments that another task returns.

    The lists are of what :func:`include.stage_request.parse_requests` reads.
    """
    chosen = {**_task_options([stage]), "max_active_tis_per_dagrun": 1, **options}
    return StageOperator.partial(**chosen).expand(application_args=arguments)


def _task_options(stages: Sequence[str]) -> dict[str, Any]:
    entries = [stage_of(stage) for stage in stages]
    return {
        "stages": stages,
        "inlets": application_inlets(stages),
        "outlets": application_outlets(stages),
        "pool": SPARK_POOL,
        "priority_weight": max(entry.priority for entry in entries),
        "retries": min(entry.retries for entry in entries),
        "execution_timeout": timedelta(seconds=sum(entry.timeout_s for entry in entries)),
    }


def _arguments(stages: Sequence[str]) -> list[str]:
    """Return what :func:`include.stage_request.parse_requests` reads, as templates."""
    names = [str(stage) for stage in stages]
    spans = {stage_of(stage).span for stage in stages}
    if Span.HOURS in spans:
        start = f"{{{{ start_of({_INTERVAL}) }}}}"
        past = [_PAST] if len(spans) > 1 else []
        return [*names, "--as-of", END, "--start", start, "--end", END, _FORCE, *past]
    if Span.JOB in spans:
        return [*names, "--as-of", AS_OF, "--job={{ params.job or '' }}"]
    return [*names, "--as-of", AS_OF]


def schedule_of(cron: str, timetable: Callable[..., Any]) -> Any:
    """Return a timetable in UTC; None where there is no cron expression."""
    return timetable(cron, timezone="UTC") if cron else None


def trigger_step(task_id: str, dag_id: str, **conf: Any) -> TriggerDagRunOperator:
    """Return the task that starts a run of another DAG and does not wait for it; a second start of it is skipped.

    Parameters of its run are templates; ``as_of`` names the run.
    """
    return TriggerDagRunOperator(
        task_id=task_id,
        trigger_dag_id=dag_id,
        trigger_run_id=f"{task_id}__{conf['as_of']}",
        conf=conf,
        skip_when_already_exists=True,
        retries=CHEAP_RETRIES,
        execution_timeout=timedelta(minutes=1),
    )


def dag_options(doc: str | None, *tags: str) -> dict[str, Any]:
    """Return what every DAG of the project has in common; Airflow's list of DAGs shows the file's first sentence."""
    return {
        "doc_md": doc,
        "description": " ".join((doc or "").partition("\n\n")[0].split()),
        "start_date": datetime(2024, 1, 1, tzinfo=UTC),  # no backfill reaches further back
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["tidewise", *tags],
        "user_defined_macros": MACROS,
        "default_args": {
            "owner": OWNER,
            "retries": CHEAP_RETRIES,
            "retry_delay": timedelta(minutes=1),
            "retry_exponential_backoff": True,
            "max_retry_delay": timedelta(minutes=10),
            "on_failure_callback": [report_failure, remember_failure, FAILURE_NOTIFIER],
            "on_success_callback": remember_success,
        },
    }
