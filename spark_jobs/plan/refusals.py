"""Why a job cannot be planned for, by the names that stand in ``gold.plans.refusal``."""

from __future__ import annotations

from include.domain.named_reason import NamedReason


class PlanRefusal(NamedReason):
    """Name of a refusal; docs/reasons.md is written from these."""

    STALE_METRICS = (
        "stale_metrics",
        "no observation within `planner.max_input_age_h`, or the running parallelism was not seen",
        "is collection running, is the job?",
    )
    JOB_ENDED = (
        "job_ended",
        "it finished, was cancelled or failed for good, or its sources were read to their end",
        "nothing",
    )
    BATCH_JOB = "batch_job", "Flink runs it as a batch job", "nothing"
    NO_GRAPH = (
        "no_graph",
        "no reply shows its graph",
        "nothing while it initialises; from Prometheus: [graphs](sources.md#graphs)",
    )
    LOAD_UNSEEN = (
        "load_unseen",
        "no counter tells what a source takes in",
        "`tidewise doctor` lists the counters; [brokers](sources.md#kafka) can tell instead",
    )
    NO_FORECAST = "no_forecast", "no forecast of a source within two days, or bins are missing", "run `tidewise_plan`"
    STALE_FORECAST = "stale_forecast", "the forecast is older than `planner.max_input_age_h`", "run `tidewise_plan`"
    NO_MODEL = (
        "no_model",
        ("no champion, or its training had not the job, an operator or their busy time"),
        "nothing for a new job; see [the gate](gate.md)",
    )
    UNKNOWN_OPERATOR = (
        "unknown_operator",
        "the job's graph cannot be read or changed since the training",
        "nothing: after the next training",
    )
    INPUTS_FAILED = (
        "inputs_failed",
        "the job's data cannot be used; the detail names the error",
        "see the log of the stage",
    )
    PAST_HORIZON = (
        "past_horizon",
        "the plan would lie in the past (a backfill)",
        "nothing",
    )
    POLICY_FAILED = (
        "policy_failed",
        "the policy raised an error; the detail names it",
        "see the log of the stage, or choose another policy",
    )


class PlanRefusedError(Exception):
    """A job that cannot be planned for, and what is behind it."""

    def __init__(self, refusal: PlanRefusal, detail: str) -> None:
        super().__init__(detail)
        self.refusal = refusal
