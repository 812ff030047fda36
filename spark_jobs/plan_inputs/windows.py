"""Windows of jobs whose policy looks at them: which columns, and as a policy is shown them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from include.domain.graph import JobGraph
from include.policy_catalogue import entry_of
from include.settings import Planner
from models.policies.observations import MEASURES, Latency, Observations
from spark_jobs.by_job import Columns

if TYPE_CHECKING:  # a worker that plans need not load it
    import pandas as pd

# name in Observations -> column of silver.observations, where they differ
COLUMNS = {
    "processing_rate_per_s": "observed_processing_rate_per_s",
    "output_rate_per_s": "observed_output_rate_per_s",
}
READ = (*(name for name in MEASURES if name != "latency_ms"), "age_s", "outstanding_records")
"""Of silver.observations, by their names in Observations: there the age is the latency."""
WINDOW = ("operator", "window_start_s", "window_s", "parallelism", "disturbed", *READ)


def any_observes(options: Planner) -> bool:
    """Whether some job's policy looks at windows: else none are read."""
    return any(entry_of(name).observes for name in options.policies_in_use)


def observations_of(graph: JobGraph, windows: Columns | pd.DataFrame | None) -> Observations:
    """Return a job's windows in the order of its graph; operators that it no longer has are left out.

    Windows of another length than the latest one (the setting was changed) are left out. They come in any order,
    columns :data:`WINDOW`.
    """
    if windows is None:
        return Observations.nothing(len(graph.names))
    columns = {name: np.asarray(windows[name]) for name in WINDOW}
    place = np.full(len(columns["operator"]), -1)
    for number, name in enumerate(graph.names):
        place[columns["operator"] == name] = number
    lengths, began = columns["window_s"], columns["window_start_s"]
    retained = place >= 0
    if not retained.any():
        return Observations.nothing(len(graph.names))
    window_s = lengths[retained][began[retained].argmax()]
    retained &= lengths == window_s
    starts, at = np.unique(began[retained].astype(np.int64), return_inverse=True)
    place, shape = place[retained], (len(starts), len(graph.names))
    parallelism, disturbed = np.zeros(shape, np.int64), np.zeros(len(starts), bool)
    parallelism[at, place] = np.nan_to_num(columns["parallelism"][retained].astype(float))
    disturbed[at[columns["disturbed"][retained] == True]] = True  # noqa: E712 - unknown is not true
    measures = {name: np.full(shape, np.nan) for name in READ}
    for name, values in measures.items():
        values[at, place] = columns[name][retained].astype(float)
    return Observations(
        window_start_s=starts.astype(np.int64),
        window_s=int(window_s),
        parallelism=parallelism,
        disturbed=disturbed,
        latency=Latency.BACKLOG_AGE,
        latency_ms=1000.0 * measures.pop("age_s"),
        **measures,
    )
