"""Profile jobs: run them at several parallelisms under growing load, then under a backlog (Phoebe, section III-C).

**Feeds** the next plan of jobs whose policy is `phoebe` or `twres`, through `gold.policy_memory`; the measurements are
in `gold.profiles`. `profiling.adapter` says where the job runs: by default a simulated replica of it. An adapter to a
real cluster can be named instead; there a profile takes hours and one worker for each unit of parallelism.

**Schedule**: none. Trigger it by hand for a new job, or when a job has changed; `job` limits it to one job.
"""

from airflow.sdk import dag

from include.orchestration.tasks import AS_OF_PARAM, JOB_PARAM, dag_options, stage_step
from include.stage_catalogue import stages
from include.stage_names import PROFILING


@dag(
    dag_id="tidewise_profile",
    schedule=None,
    params={"as_of": AS_OF_PARAM, "job": JOB_PARAM},
    **dag_options(__doc__, "profile"),
)
def tidewise_profile() -> None:
    """Wire the DAG."""
    stage_step(PROFILING)


if PROFILING in stages():  # it comes with the laboratory (lab/)
    tidewise_profile()
