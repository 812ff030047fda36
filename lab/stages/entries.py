"""What is known of each stage of the laboratory before it is started; the entry points in pyproject.toml name these."""

from __future__ import annotations

from include import tables
from include.stage_catalogue import MODELS, SILVER, Span, StageEntry, names_of

COMPARISONS, ADVICE_PAGE, COSTS = "mlflow.comparisons", "advice.page", "mlflow.plan_costs"
_HOUR_S = 3600

LEARN = StageEntry(
    "lab.stages.learn.stage",
    (*names_of(tables.OBSERVATIONS, tables.JOB_GRAPHS), MODELS),
    names_of(tables.POLICY_MEMORY),
    timeout_s=_HOUR_S,
)
PROFILING = StageEntry(
    "lab.stages.profiling.stage",
    (*names_of(tables.OBSERVATIONS, tables.JOB_GRAPHS, tables.POLICY_MEMORY), MODELS),
    names_of(tables.PROFILES, tables.POLICY_MEMORY),
    timeout_s=3 * _HOUR_S,
    retries=1,  # on a real cluster a phase takes hours; a retry begins from the start
    span=Span.JOB,
)
BACKTEST = StageEntry(
    "lab.stages.backtest.stage",
    (*names_of(tables.OBSERVATIONS, tables.JOB_GRAPHS, tables.OPERATOR_KEYS, tables.RESCALES), MODELS),
    (*names_of(tables.BACKTESTS, tables.CERTIFICATES), COMPARISONS),
    timeout_s=3 * _HOUR_S,
)
PLAN_COSTS = StageEntry(
    "lab.stages.plan_costs.stage",
    (*names_of(tables.OBSERVATIONS, tables.JOB_GRAPHS, tables.OPERATOR_KEYS, tables.MODEL_VERSIONS), MODELS),
    (COSTS,),
    timeout_s=_HOUR_S,
)
ADVISE = StageEntry("lab.stages.advise.stage", (*SILVER, MODELS), (ADVICE_PAGE,), timeout_s=3 * _HOUR_S)
