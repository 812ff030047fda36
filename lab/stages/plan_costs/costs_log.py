"""What plans would have cost, in the run of the training that is already finished: it stays finished throughout."""

from __future__ import annotations

from mlflow.entities import Run

from lab.stages.plan_costs.fleet_costs import PlanComparison
from spark_jobs.comparison_page import COMPARISON_PAGE, COMPARISON_ROWS, render_comparison
from spark_jobs.model_store import NOTE_TAG, ModelStore

COST_TABLE, OTHER_STEP_TABLE = "plan_costs.json", "other_steps.json"
JOBS_METRIC = "plans/jobs"  # written last: a run that has it has everything
_HEADING = "**What plans would have cost**"


def log_costs(store: ModelStore, run: Run, plans: PlanComparison) -> None:
    """Log tables, page, description and metrics to the run of a training.

    Args:
        store: where the run is.
        run: of the training.
        plans: what the comparison has shown.
    """
    client, run_id = store.client, run.info.run_id
    known = {item.path for item in client.list_artifacts(run_id)}
    for rows, file in ((plans.costs, COST_TABLE), (plans.other_steps, OTHER_STEP_TABLE)):
        if len(rows) and file not in known:  # MLflow would append the rows of a second try
            client.log_table(run_id, rows, file)
    compared = store.read_document(run, COMPARISON_ROWS)
    if compared is not None:
        client.log_text(run_id, render_comparison(compared, plans.sentence, plans.differences), COMPARISON_PAGE)
    store.describe(run, add_plan_costs(run.data.tags.get(NOTE_TAG, ""), plans.sentence))
    for name, value in sorted(plans.measures.items(), key=lambda measure: measure[0] == JOBS_METRIC):
        client.log_metric(run_id, name, value)


def add_plan_costs(note: str, sentence: str) -> str:
    r"""Return a training's description with what plans would have cost as its second paragraph, once.

    >>> add_plan_costs("**Gate**: passed.\n\nModels of 2 jobs.", "no difference").splitlines()[2][:48]
    '**What plans would have cost** in the week befor'
    """
    paragraph = (
        f"{_HEADING} in the week before, by these models: {sentence}. Both plan the same load, on"
        f" a replica of either's models (`{COST_TABLE}`, `{OTHER_STEP_TABLE}`). The gate does not read it."
    )
    first, *others = (part for part in note.split("\n\n") if not part.startswith(_HEADING))
    return "\n\n".join([first, paragraph, *others])
