"""Compare policies: what the last week of every job would have cost under each of them.

Each policy is replayed on the job's own history, against a simulated replica of the job (the champion's capacity curves
and downtimes under the measured load). **Feeds** the report through `gold.backtests` and `gold.certificates`, and
MLflow (experiment `<experiment>-backtest`). The recommended policy of a job is a column: nothing changes until a person
names it in `planner.policies`.

**Schedule**: weekly, after a night's training. `as_of` is the end of the history, so a comparison can be repeated
exactly. `backtest.policies` names the policies; a policy that fails on a job has a row with its error.
"""

from airflow.sdk import chain, dag

from include.orchestration.airflow_names import CronTriggerTimetable
from include.orchestration.tasks import AS_OF_PARAM, dag_options, stage_step
from include.settings import load_settings
from include.stage_catalogue import stages
from include.stage_names import BACKTEST, Stage


@dag(
    dag_id="tidewise_backtest",
    schedule=CronTriggerTimetable(load_settings().schedules.backtest, timezone="UTC"),
    params={"as_of": AS_OF_PARAM},
    **dag_options(__doc__, "backtest"),
)
def tidewise_backtest() -> None:
    """Wire the DAG."""
    chain(stage_step(BACKTEST), stage_step(Stage.REPORT))


if BACKTEST in stages():  # it comes with the laboratory (lab/)
    tidewise_backtest()
