"""Train the models of all jobs: silver tables -> one MLflow run with one model for the whole fleet.

A gate compares the new model with the champion before it takes over. Then policies that learn from history (MDP and
reinforcement learning) are trained; the task is skipped when no job uses one.

**Feeds** plans. When it fails the last champion stays in use; once no training has compared it for
`planner.max_model_age_h` hours, plans widen its intervals and carry a warning.

**Schedule**: nightly. `as_of` limits the observations that are used, so a training can be repeated exactly.
"""

from airflow.sdk import CronTriggerTimetable, chain, dag, task

from include.orchestration.tasks import AS_OF_PARAM, dag_options, stage_step
from include.policy_catalogue import names_where
from include.settings import load_settings
from include.stages import Stage


@task.short_circuit(task_id="policies_learn")
def some_policy_learns() -> bool:
    """Whether a policy in the settings learns; starts no Spark."""
    return bool(names_where(learns_nightly=True) & load_settings().planner.policies_in_use)


@dag(
    dag_id="tidewise_train",
    schedule=CronTriggerTimetable(load_settings().schedules.train, timezone="UTC"),
    doc_md=__doc__,
    params={"as_of": AS_OF_PARAM},
    **dag_options("train"),
)
def tidewise_train() -> None:
    """Wire the DAG."""
    chain(stage_step(Stage.TRAIN), some_policy_learns(), stage_step(Stage.LEARN))


tidewise_train()
