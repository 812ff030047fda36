"""Profile jobs: deployments at several scale-outs replay growing rates, then work off a backlog (Phoebe III-C).

**Feeds** the next plan of jobs whose policy is `phoebe` or `twres`, through `gold.policy_memory`; measurements stand
in `gold.profiles`. What runs the deployments is `profiling.adapter`: a simulated twin of the job unless the settings
name an adapter to a real cluster, on which a phase takes hours and a worker per scale-out.

**Schedule**: none. Trigger it by hand for a new job, or when a job has changed; `job` limits it to one.
"""

from airflow.sdk import dag

from include.orchestration.tasks import AS_OF_PARAM, JOB_PARAM, dag_options, stage_step
from include.stages import Stage


@dag(
    dag_id="tidewise_profile",
    schedule=None,
    doc_md=__doc__,
    params={"as_of": AS_OF_PARAM, "job": JOB_PARAM},
    **dag_options("profile"),
)
def tidewise_profile() -> None:
    """Wire the DAG."""
    stage_step(Stage.PROFILE)


tidewise_profile()
