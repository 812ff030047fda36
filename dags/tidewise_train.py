"""Train the models of all jobs: silver tables -> one MLflow run with one model for the whole fleet.

A gate compares the new model with the champion before it takes over. Then policies that learn from history (MDP and
reinforcement learning) are trained; the task is skipped when no job uses one. Where there was a champion before,
`plan_costs` adds to the training's run in MLflow what a week's plans would have cost by either; nothing waits for it,
and nothing but that page is missing when it fails. Both tasks come with the laboratory (`lab/`).

**Feeds** plans. When it fails the last champion stays in use; once no training has compared it for
`planner.max_model_age_h` hours, plans widen its intervals and carry a warning.

**Schedule**: nightly, and from `tidewise_hour` for jobs that are in no model yet, with a plan after it (`then_plan`).
`as_of` limits the observations that are used, so a training can be repeated exactly.
"""

from airflow.sdk import chain, dag, task

from include.orchestration.airflow_names import CronTriggerTimetable
from include.orchestration.submitted_stage import read_counts
from include.orchestration.tasks import AS_OF, AS_OF_PARAM, THEN_PLAN_PARAM, dag_options, stage_step, trigger_step
from include.policy_catalogue import names_where
from include.settings import load_settings
from include.stage_catalogue import stages
from include.stage_names import LEARN, PLAN_COSTS, Stage


@task.short_circuit(task_id="policies_learn")
def some_policy_learns() -> bool:
    """Whether a policy in the settings learns; starts no Spark."""
    return bool(names_where(load_settings().planner.policies_in_use, learns_nightly=True))


@task.short_circuit(task_id="models_compared")
def champion_was_there() -> bool:
    """Whether plans by new models can be compared with a champion's, and the settings want it; starts no Spark."""
    settings = load_settings()
    trained = read_counts(settings, [Stage.TRAIN]).get(Stage.TRAIN, {"champion_before": "unknown"})
    return bool(settings.training.plan_cost_jobs and trained["champion_before"])


@task.short_circuit(task_id="plan_wanted")
def plan_is_wanted(then_plan: bool | str) -> bool:
    """Whether the run was asked for a plan."""
    return str(then_plan) == "True"


@dag(
    dag_id="tidewise_train",
    schedule=CronTriggerTimetable(load_settings().schedules.train, timezone="UTC"),
    params={"as_of": AS_OF_PARAM, "then_plan": THEN_PLAN_PARAM},
    **dag_options(__doc__, "train"),
)
def tidewise_train() -> None:
    """Wire the DAG."""
    train, plan = stage_step(Stage.TRAIN), trigger_step("first_plan", "tidewise_plan", as_of=AS_OF)
    for is_wanted, stage in ((some_policy_learns, LEARN), (champion_was_there, PLAN_COSTS)):
        if stage in stages():
            chain(train, is_wanted(), stage_step(stage))
    chain(train, plan_is_wanted("{{ params.then_plan }}"), plan)


tidewise_train()
