"""What is known of each Spark stage before it is started: its module, what it reads and writes, how long it may take.

A stage of another distribution is an entry point of the group ``tidewise.stages``: its name is the stage's, its value
``module:ENTRY`` names a :class:`StageEntry` in a module that imports nothing heavy, since DAG files read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from include import tables
from include.entry_points import LABORATORY, EntryRegistry
from include.stage_names import Stage

GROUP = "tidewise.stages"
RAW, MODELS, PAGE = "raw.payloads", "mlflow.fleet_bundle", "report.page"
"""What stages read and write besides tables."""


class Span(StrEnum):
    """What a run of a stage is about."""

    MOMENT = "a moment"
    HOURS = "hours"
    JOB = "a moment, and one job or all"


@dataclass(frozen=True, slots=True)
class StageEntry:
    """What is known of a stage.

    Attributes:
        module: whose function ``run`` it is; imported when the stage starts.
        reads, writes: names of tables, and of what else Airflow shows as assets.
        timeout_s: of one try; several times what the stage takes for a fleet of a thousand jobs.
        retries: a stage may always be run again, so a passing fault of storage or cluster costs only time.
        priority: weight in the pool: steps that are due must not wait for a training.
        span: what its run is about.
    """

    module: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    timeout_s: int
    retries: int = 2
    priority: int = 1
    span: Span = Span.MOMENT

    @property
    def package(self) -> str:
        """The package of its module: code of its own."""
        return self.module.rpartition(".")[0]


class StageCatalogueError(ValueError):
    """A stage that is not known."""


def names_of(*of: tables.Table) -> tuple[str, ...]:
    """Return the names of tables."""
    return tuple(table.name for table in of)


SILVER = names_of(tables.OBSERVATIONS, tables.JOB_GRAPHS, tables.JOBS, tables.OPERATOR_KEYS, tables.RESCALES)
_COMPARED = names_of(tables.BACKTESTS, tables.CERTIFICATES)
_MINUTE_S, _HOUR_S = 60, 3600
BUILT_IN: Mapping[str, StageEntry] = {
    Stage.INGEST: StageEntry(
        "spark_jobs.ingest.stage",
        (RAW,),
        (
            *names_of(tables.BRONZE_METRICS, tables.BRONZE_JOB_EVENTS, tables.QUARANTINE, tables.FILES, tables.QUALITY),
            *SILVER,
        ),
        timeout_s=60 * _MINUTE_S,
        retries=3,
        span=Span.HOURS,
    ),
    Stage.TRAIN: StageEntry(
        "spark_jobs.train.stage",
        SILVER,
        (*names_of(tables.JOB_WINDOWS, tables.MODEL_VERSIONS, tables.MODEL_JOBS), MODELS),
        timeout_s=3 * _HOUR_S,
    ),
    Stage.FORECAST: StageEntry(
        "spark_jobs.forecast.stage",
        names_of(tables.OBSERVATIONS, tables.JOB_GRAPHS, tables.JOBS, tables.OPERATOR_KEYS),
        names_of(tables.SOURCE_LOADS, tables.FORECASTS, tables.FORECAST_SCORES),
        timeout_s=30 * _MINUTE_S,
        priority=5,
    ),
    Stage.PLAN: StageEntry(
        "spark_jobs.plan.stage",
        (*SILVER, *names_of(tables.FORECASTS, tables.POLICY_MEMORY), MODELS),
        names_of(tables.PLANS, tables.POLICY_MEMORY),
        timeout_s=30 * _MINUTE_S,
        priority=5,
    ),
    Stage.REPORT: StageEntry(
        "spark_jobs.report.stage",
        (
            *names_of(tables.PLANS, tables.CONTROL_LOG, tables.FORECASTS, tables.RESCALES, tables.QUALITY),
            *_COMPARED,
            *names_of(tables.OBSERVATIONS),
            MODELS,
        ),
        (*names_of(tables.JOB_DAYS, tables.STEP_RESULTS, tables.EVENT_RESULTS), PAGE),
        timeout_s=15 * _MINUTE_S,
    ),
}


@lru_cache(maxsize=1)
def stages() -> Mapping[str, StageEntry]:
    """Return all stages by name: the product's in the order of the data, then those of other distributions.

    Raises:
        EntryPointError: (a ValueError) two stages have one name, or a name is misspelt.
    """
    return EntryRegistry(GROUP, StageEntry, BUILT_IN)


def stage_of(name: str) -> StageEntry:
    """Return what is known of a stage.

    Raises:
        StageCatalogueError: there is none of that name.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    try:
        return stages()[name]
    except KeyError:
        raise StageCatalogueError(
            f"no stage is called {name!r}: write one of {', '.join(stages())}; those that compare policies come with "
            f"{LABORATORY} (lab/), which `make setup` installs"
        ) from None
