"""Learn stage: weeks of silver.observations -> what the policies of jobs know, in ``gold.policy_memory``.

Each policy learns its whole look-back from the beginning, so a rerun writes the same rows; the plans after it go on
from there with the windows that it has not seen.  A job that cannot be learnt from keeps the memory that it has.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from pyspark.sql import SparkSession

from include import tables
from include.policy_catalogue import names_where
from include.settings import Settings
from include.stage_names import LEARN
from include.stage_request import StageRequest
from lab.stages.inputs.newest_rows import memory_rows, read_graphs
from lab.stages.inputs.windows import has_policy, windows_between
from lab.stages.learn.job_learning import ROW_SCHEMA, PolicyLearnTask, make_learner
from spark_jobs.lake import Lake
from spark_jobs.model_store import champion
from spark_jobs.newest_rows import JOB
from spark_jobs.plan_inputs.policy_memory import own_memories


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Let every policy that learns by night learn from the history before ``request.as_of``.

    Raises:
        LostInputError: what was learnt as of that time is there, and no table has a job any more.
    """
    options, as_of = settings.planner, request.as_of
    learners = names_where(options.policies_in_use, learns_nightly=True)
    bundle = champion(settings) if learners else None
    if bundle is None:  # nobody learns, or nothing is known of any job
        return {"jobs": 0, "learned": 0, "refused": {}}
    lake, learns = Lake(spark, settings.paths.lake), has_policy(options, learners)
    since = as_of - timedelta(days=settings.training.lookback_days)
    states = read_graphs(lake, as_of).where(learns)
    windows = windows_between(lake.read(tables.OBSERVATIONS), since, as_of).where(learns)
    task = PolicyLearnTask(settings, as_of, spark.sparkContext.broadcast(bundle))
    made = states.groupBy(*JOB).cogroup(windows.groupBy(*JOB)).applyInPandas(make_learner(task), ROW_SCHEMA)  # type: ignore[arg-type]
    rows = made.localCheckpoint()
    if rows.isEmpty():
        lake.require_empty(tables.POLICY_MEMORY, own_memories(LEARN, as_of))
    lake.replace(tables.POLICY_MEMORY, memory_rows(rows, LEARN, as_of), own_memories(LEARN, as_of))
    result = Counter(row["refusal"] for row in rows.select("refusal").collect())
    refused = {str(name): count for name, count in sorted(result.items(), key=str) if name}
    return {"jobs": result.total(), "learned": result[None], "refused": refused}
