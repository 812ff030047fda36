"""What the tasks' templates become for each kind of run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from airflow.sdk.exceptions import AirflowFailException, ParamValidationError

from include.orchestration.controller_step import controller_step
from include.stage_names import PROFILING, Stage
from include.stage_request import StageRequest, parse_requests
from include.utc import IntervalError

pytestmark = pytest.mark.airflow

PLAN_TASK = "forecast_plan_report"
SIX_OH_FIVE = datetime(2026, 11, 20, 18, 5, tzinfo=UTC)
SEVEN_OH_FIVE = datetime(2026, 11, 20, 19, 5, tzinfo=UTC)


@dataclass
class Run:
    run_type: str = "scheduled"
    run_after: datetime = SEVEN_OH_FIVE


def rendered(dags, dag_id, task_id, **context) -> StageRequest:
    return rendered_all(dags, dag_id, task_id, **context)[0]


def rendered_all(dags, dag_id, task_id, *, params=None, run=None, **context) -> tuple[StageRequest, ...]:
    dag = dags[dag_id]
    given = dict.fromkeys(dag.params) | (params or {})
    environment = dag.get_template_env()
    arguments = [
        environment.from_string(argument).render(params=given, dag_run=run or Run(), **context)
        for argument in dag.get_task(task_id).application_args
    ]
    requests = parse_requests(arguments)
    assert requests == tuple(replace(requests[0], stage=request.stage) for request in requests)
    return requests


def test_hourly_ingest_takes_the_full_hour_of_its_interval(dags):
    request = rendered(
        dags, "tidewise_ingest", "ingest", data_interval_start=SIX_OH_FIVE, data_interval_end=SEVEN_OH_FIVE
    )
    assert (request.start, request.end) == (
        datetime(2026, 11, 20, 18, tzinfo=UTC),
        datetime(2026, 11, 20, 19, tzinfo=UTC),
    )
    assert request.as_of == request.end
    assert request.stage == Stage.INGEST


def test_explicit_hours_win_over_the_interval(dags):
    params = {"start": "2026-11-01T00:00:00Z", "end": "2026-11-08T00:00:00+00:00"}
    request = rendered(
        dags,
        "tidewise_ingest",
        "ingest",
        params=params,
        data_interval_start=SIX_OH_FIVE,
        data_interval_end=SEVEN_OH_FIVE,
    )
    assert (request.start, request.end) == (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 8, tzinfo=UTC))


@pytest.mark.parametrize(
    ("run_type", "stages"),
    [
        ("scheduled", (Stage.INGEST, Stage.FORECAST, Stage.PLAN, Stage.REPORT)),
        ("manual", (Stage.INGEST, Stage.FORECAST, Stage.PLAN, Stage.REPORT)),
        ("backfill", (Stage.INGEST,)),  # no plan is made for the past
    ],
)
def test_an_hour_is_ingested_and_planned_as_of_its_end(dags, run_type, stages):
    interval = {"data_interval_start": SIX_OH_FIVE, "data_interval_end": SEVEN_OH_FIVE}
    start, end = (datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in (18, 19))
    requests = rendered_all(dags, "tidewise_hour", "hour", run=Run(run_type), **interval)
    assert requests == tuple(StageRequest(stage, end, start, end) for stage in stages)


@pytest.mark.parametrize("dag_id", ["tidewise_ingest", "tidewise_import"])
def test_lost_input_is_replaced_only_where_that_is_asked_for(dags, dag_id):
    hours = {"start": "2026-11-01T00:00:00Z", "end": "2026-11-08T00:00:00Z"}
    assert not rendered(dags, dag_id, "ingest", params=hours).is_forced
    assert not rendered(dags, dag_id, "ingest", params=hours | {"force": False}).is_forced
    assert rendered(dags, dag_id, "ingest", params=hours | {"force": True}).is_forced


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ("2026-11-20T16:00:00Z", True),
        ("2026-11-20T16:00:00.000Z", True),
        ("2026-11-20T16:00:00+02:00", True),
        ("2026-11-20T16:30:00+05:30", True),
        ("2026-11-20T16:30:00Z", False),
        ("2026-11-20T16:00:01Z", False),
        ("tomorrow", False),
    ],
)
def test_airflows_page_takes_full_hours_only(dags, text, is_taken):
    for dag_id in ("tidewise_ingest", "tidewise_import"):
        param = dags[dag_id].params.get_param("start")
        if is_taken:
            assert param.resolve(text) == text
        else:
            with pytest.raises(ParamValidationError):
                param.resolve(text)


def test_past_hours_have_to_be_named_and_a_job_is_in_a_cluster(dags):
    with pytest.raises(ParamValidationError):
        dags["tidewise_import"].params.get_param("start").resolve(None)
    with pytest.raises(ParamValidationError):
        dags["tidewise_profile"].params.get_param("job").resolve("orders")


def test_wrong_parameters_are_said_at_once_and_no_retry_follows(dags):
    with pytest.raises(AirflowFailException, match=r"parameters cannot be used: .*both start and end"):
        rendered(dags, "tidewise_ingest", "ingest", params={"start": "2026-11-01T00:00:00Z"})


def test_a_trigger_without_interval_or_hours_says_what_to_pass(dags):
    with pytest.raises(IntervalError, match="start and end"):
        rendered(dags, "tidewise_ingest", "ingest", run=Run("manual"))


def test_half_an_interval_is_refused(dags):
    with pytest.raises(IntervalError, match="both start and end"):
        rendered(dags, "tidewise_ingest", "ingest", params={"start": "2026-11-01T00:00:00Z"})


@pytest.mark.parametrize(
    ("dag_id", "task_id"),
    [("tidewise_train", "train"), ("tidewise_plan", PLAN_TASK), ("tidewise_backtest", "backtest")],
)
def test_scheduled_run_looks_from_its_own_moment(dags, dag_id, task_id):
    request = rendered(dags, dag_id, task_id, data_interval_start=SEVEN_OH_FIVE, data_interval_end=SEVEN_OH_FIVE)
    assert request.as_of == SEVEN_OH_FIVE
    assert request.start is None


def test_a_plain_trigger_looks_from_when_it_was_asked_for(dags):
    assert rendered(dags, "tidewise_plan", PLAN_TASK, run=Run("manual", SIX_OH_FIVE)).as_of == SIX_OH_FIVE


def test_profiling_is_of_one_job_or_of_all(dags):
    run = Run("manual", SIX_OH_FIVE)
    assert rendered(dags, "tidewise_profile", "profiling", run=run) == StageRequest(PROFILING, SIX_OH_FIVE)
    one = rendered(dags, "tidewise_profile", "profiling", run=run, params={"job": "prod/word count"})
    assert one == StageRequest(PROFILING, SIX_OH_FIVE, job="prod/word count")


def test_as_of_wins(dags):
    params = {"as_of": "2026-11-20T12:00:00Z"}
    request = rendered(dags, "tidewise_plan", PLAN_TASK, params=params, data_interval_end=SEVEN_OH_FIVE)
    assert request.as_of == datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("dag_id", "task_id"),
    [
        ("tidewise_train", "train"),
        ("tidewise_train", "learn"),
        ("tidewise_train", "plan_costs"),
        ("tidewise_plan", PLAN_TASK),
        ("tidewise_profile", "profiling"),
        ("tidewise_backtest", "backtest"),
    ],
)
def test_a_backfill_never_plans_for_the_past(dags, dag_id, task_id):
    with pytest.raises(IntervalError, match="never made for the past"):
        rendered(dags, dag_id, task_id, run=Run("backfill"), data_interval_end=SIX_OH_FIVE)


def test_a_backfill_ingests(dags):
    request = rendered(
        dags,
        "tidewise_ingest",
        "ingest",
        run=Run("backfill"),
        data_interval_start=SIX_OH_FIVE,
        data_interval_end=SEVEN_OH_FIVE,
    )
    assert request.start == datetime(2026, 11, 20, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    ("params", "interval", "arguments"),
    [
        ({}, (SIX_OH_FIVE, SEVEN_OH_FIVE), "--until 2026-11-20T20:04:45Z"),
        ({}, (None, None), "--once"),
        ({"as_of": "2026-11-20T12:00:00+00:00"}, (SIX_OH_FIVE, SEVEN_OH_FIVE), "--as-of 2026-11-20T12:00:00Z"),
    ],
)
def test_the_controller_goes_on_until_its_next_run(dags, params, interval, arguments):
    dag = dags["tidewise_control"]
    command = dag.get_task("control").bash_command
    context = {"params": {"as_of": None} | params, "data_interval_start": interval[0], "data_interval_end": interval[1]}
    shown = dag.get_template_env().from_string(command).render(**context)
    assert shown.endswith(f"-m controller {arguments}")


def test_where_the_controller_is_a_service_a_run_only_watches_it(dags):
    environment = dags["tidewise_control"].get_template_env()

    def render(**context):
        command = controller_step(is_service=True).bash_command
        return environment.from_string(command).render(**({"params": {"as_of": None}} | context))

    assert render(data_interval_start=SIX_OH_FIVE, data_interval_end=SEVEN_OH_FIVE).endswith("-m controller --watch")
    assert render().endswith("-m controller --watch")
    assert render(params={"as_of": "2026-11-20T12:00:00Z"}).endswith("--as-of 2026-11-20T12:00:00Z")
