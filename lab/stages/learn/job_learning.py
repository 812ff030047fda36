"""Learning of one job's policy from its history."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import pandas as pd
from pyspark.broadcast import Broadcast

from include.domain.graph import GraphError
from include.settings import Settings
from lab.stages.inputs.skipped_jobs import LearnSkip
from models.bundle.fleet_bundle import BundleError, FleetBundle
from models.policies.protocol import History, Learner
from models.policies.registry import memory_codec, policy
from spark_jobs.plan_inputs.job_state import graph_of, placed_of
from spark_jobs.plan_inputs.windows import observations_of

log = logging.getLogger(__name__)
ROW_SCHEMA = "cluster STRING, job STRING, policy STRING, memory STRING, windows INT, refusal STRING"
COLUMNS = [column.split()[0] for column in ROW_SCHEMA.split(", ")]


@dataclass(frozen=True, slots=True)
class PolicyLearnTask:
    """Common inputs of every job's learning; shipped to the executors once."""

    settings: Settings
    as_of: datetime
    bundle: Broadcast[FleetBundle]


def make_learner(task: PolicyLearnTask) -> Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]:
    """Return the function that Spark applies to the graph and the windows of each job."""

    def learn(states: pd.DataFrame, windows: pd.DataFrame) -> pd.DataFrame:
        rows = [job_row(task, states.iloc[0].to_dict(), windows)] if len(states) else []
        return pd.DataFrame(rows, columns=COLUMNS, dtype=object)

    return learn


def job_row(task: PolicyLearnTask, state: dict[Any, Any], windows: pd.DataFrame) -> dict[str, object]:
    """Return the row of one job: what its policy now remembers, or the name of why it learnt nothing."""
    cluster, job = state["cluster"], state["job"]
    name = task.settings.planner.policy_of(cluster, job)
    row: dict[str, object] = {"cluster": cluster, "job": job, "policy": name}
    try:
        operators = json.loads(state["operators"])
        graph = graph_of(operators)
        models = task.bundle.value.for_job(cluster, job, placed_of(operators))
        history = History(
            as_of_s=math.ceil(task.as_of.timestamp()),
            graph=graph,
            models=models,
            slots_max=task.settings.cluster(cluster).slots_max,
            options=task.settings.planner.for_job(cluster, job),
            observations=observations_of(graph, windows),
        )
        chosen = cast("Learner[Any]", policy(name, task.settings.parameters_of(name, f"{cluster}/{job}")))
        memory = chosen.learn(history)
        if memory == chosen.first_memory():  # what the plans have left must not be lost for it
            return row | {"refusal": str(LearnSkip.NOTHING_LEARNT)}
        return row | {"memory": memory_codec(name).dump(memory), "windows": len(history.observations)}
    except BundleError:
        return row | {"refusal": str(LearnSkip.NO_MODEL)}
    except GraphError:
        return row | {"refusal": str(LearnSkip.UNKNOWN_OPERATOR)}
    except Exception:  # one job's policy must not keep the others from learning
        log.exception("policy %s of %s/%s", name, cluster, job)
        return row | {"refusal": str(LearnSkip.POLICY_FAILED)}
