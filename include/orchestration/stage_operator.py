"""The Airflow operator of Spark stages, and the message of a task that failed."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TextIO

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.bases.hook import BaseHook

from include.entry_points import EntryPointError
from include.orchestration.airflow_names import AirflowException, AirflowFailException
from include.orchestration.asset_facts import add_facts
from include.orchestration.stage_lines import show_levels
from include.orchestration.submitted_stage import find_maker, read_counts, run_operator
from include.own_python import find_python
from include.place import local_beside
from include.settings import PROJECT, Settings, load_settings
from include.spark.submission import anchor_paths, prepare_submission
from include.stage_request import StageRequest, parse_requests
from include.utc import format_utc

RUNBOOK = "docs/runbook.md#when-a-stage-fails"
LONGEST = timedelta(hours=3)
"""Of stages without a timeout."""
log = logging.getLogger(__name__)


class StageOperator(SparkSubmitOperator):  # type: ignore[misc]  # mypy does not follow providers
    """Submit one or several stages as one application, through the Spark connection that the settings name.

    The code package, the jars and the environment are put together when the task runs: parsing a DAG file touches none
    of them, and a task runs the code that is there when it starts.
    """

    application_args: list[str] | None

    def __init__(self, *, stages: Sequence[str], **options: Any) -> None:
        options = {
            "application": str(PROJECT / "spark_jobs" / "launch.py"),
            "name": f"tidewise-{'-'.join(stages)}",
            "conn_id": load_settings().spark.connection_id,
            "doc_md": f"Spark stages in one application: {', '.join(stages)}. If one fails: {RUNBOOK}.",
        } | options
        super().__init__(**options)
        self.stages = tuple(stages)
        self.summaries: dict[str, dict[str, Any]] = {}
        self._spark_log: TextIO | None = None
        self._service: Any = None

    def execute(self, context: Any) -> None:
        """Build the package if the code changed, then submit to where the connection's type says.

        Raises:
            AirflowException: the stage failed; the message says where the log is and what to do.
            AirflowFailException: no further try can succeed as the connection is set up.
        """
        settings = load_settings()
        asked = self.application_args or []
        requests = parse_requests(asked)
        log.info("tidewise: %s", describe_requests(requests))
        connection = BaseHook.get_connection(settings.spark.connection_id)
        try:
            make = find_maker(connection.conn_type)
        except EntryPointError as error:
            raise AirflowFailException(f"the connection {connection.conn_id}: {error}") from error
        if make is None:
            self._run_by_spark_submit(settings, connection.host, asked, context)
        else:
            self._run_elsewhere(make, settings, context)
        add_facts(context, requests, self.summaries)

    def _run_elsewhere(self, make: Callable[..., Any], settings: Settings, context: Any) -> None:
        """Run the operator that a team's function makes; any master but this machine's stands for the service's.

        Raises:
            AirflowException: the stage failed.
        """
        asked = self.application_args or []
        within_s = (self.execution_timeout or LONGEST).total_seconds()
        self._service = make(self.task_id, prepare_submission(settings, "yarn"), asked, settings, within_s)
        try:
            run_operator(self._service, context)
        except AirflowException as error:
            raise AirflowException(
                f"{' or '.join(self.stages)} failed (`{' '.join(asked)}`): {error}. The driver's log is with the "
                f"service, whose run is named above. What to do: {RUNBOOK}"
            ) from error
        self.summaries.update(read_counts(settings, [one.stage for one in parse_requests(asked)]))

    def _run_by_spark_submit(self, settings: Settings, master: str | None, asked: list[str], context: Any) -> None:
        """Run spark-submit here.

        Raises:
            AirflowException: the stage failed.
        """
        submission = prepare_submission(settings, master=master)
        self.conf = submission.conf
        self.py_files = submission.package
        self.env_vars = submission.environment
        self.files = submission.settings  # for drivers that run elsewhere, which have none of these variables
        self.application_args = submission.arguments(asked)
        _find_spark_submit()
        file = name_log(settings, f"{self.dag_id}.{self.task_id}")
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with file.open("w", encoding="utf-8") as self._spark_log:
                super().execute(context)
        except AirflowException as error:
            raise AirflowException(
                f"{' or '.join(self.stages)} failed (`{' '.join(asked)}`): the line `tidewise: "
                f"stage ... failed` above names the stage and the cause. What to do: {RUNBOOK}. Spark's own log: {file}"
            ) from error
        finally:
            self._spark_log = None
        log.info("tidewise: Spark's own log: %s", file)

    def on_kill(self) -> None:
        """End what runs, here or on the service."""
        if self._service is None:
            super().on_kill()
        else:
            self._service.on_kill()

    def _get_hook(self) -> Any:
        """Return the hook, which shows what stages warn of at that level."""
        hook = super()._get_hook()
        show_levels(hook, self.summaries, self._spark_log)
        return hook


def name_log(settings: Settings, task: str) -> Path:
    """Return the file of Spark's own log: on this machine, also where ``paths.out`` is in a bucket.

    >>> name_log(Settings(paths={"out": "s3://bucket/out"}), "dag.task").relative_to(PROJECT).as_posix()
    'out/bucket_out/spark_logs/dag.task.log'
    """
    return PROJECT / local_beside(anchor_paths(settings).paths.out) / "spark_logs" / f"{task}.log"


def describe_requests(requests: Sequence[StageRequest]) -> str:
    """Return which hours, or which moment, an application is about.

    >>> from include.stage_names import Stage
    >>> from include.utc import parse_utc
    >>> hour = [parse_utc(f"2026-11-20T{hour}:00:00Z") for hour in (16, 17)]
    >>> describe_requests([StageRequest(Stage.INGEST, hour[1], *hour)])
    'ingest of the hours 2026-11-20T16:00:00Z to 2026-11-20T17:00:00Z (exclusive)'
    """
    names, first = ", ".join(one.stage for one in requests), requests[0]
    if first.start is not None and first.end is not None:
        return f"{names} of the hours {format_utc(first.start)} to {format_utc(first.end)} (exclusive)"
    return f"{names} as of {format_utc(first.as_of)}"


def _find_spark_submit() -> None:
    """Let the hook find the spark-submit of this virtual environment when PATH has none."""
    if shutil.which("spark-submit") is None:
        os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{Path(find_python()).parent}"


def report_failure(context: Any) -> None:
    """Say what failed for good and what to do, in the scheduler's log (Airflow's ``on_failure_callback``)."""
    task = context["task_instance"]
    log.error(
        "tidewise: task %s of %s (run %s) failed after %s tries: %s. What to do: %s. "
        "The task may be cleared and run again at any time.",
        *(task.task_id, task.dag_id, task.run_id, task.try_number, context.get("exception"), RUNBOOK),
    )
