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
        "nothing: it is planned when it runs again",
    )
    BATCH_JOB = "batch_job", "Flink runs it as a batch job", "nothing: neither plan nor controller touches it"
    NO_GRAPH = (
        "no_graph",
        "no reply shows its graph: it initialises, or comes from Prometheus without one",
        "it is planned from the first reply with a graph; see [sources](sources.md)",
    )
    LOAD_UNSEEN = (
        "load_unseen",
        "no counter tells what a source takes in",
        "`tidewise doctor` lists the counters of each source; brokers can tell instead, see [sources](sources.md)",
    )
    NO_FORECAST = "no_forecast", "no forecast of a source within two days, or bins are missing", "run `tidewise_plan`"
    STALE_FORECAST = "stale_forecast", "the forecast is older than `planner.max_input_age_h`", "run `tidewise_plan`"
    NO_MODEL = (
        "no_model",
        ("no champion, or the job or its operators were not in its training, or Flink never measured their busy time"),
        "a training is triggered for a new job; see [the gate](gate.md)",
    )
    UNKNOWN_OPERATOR = (
        "unknown_operator",
        "the job's graph cannot be read or changed since the training",
        "it is planned after the next training",
    )
    INPUTS_FAILED = (
        "inputs_failed",
        "what is known of the job cannot be used; the detail names the error",
        "see the log of the stage; other jobs are planned",
    )
    PAST_HORIZON = (
        "past_horizon",
        "the plan asked for lies in the past of the data (a backfill)",
        "nothing: plans are only made for the future",
    )
    POLICY_FAILED = (
        "policy_failed",
        "the policy raised an error; the detail names it",
        "see the log of the stage; choose another policy for the job",
    )


class PlanRefusedError(Exception):
    """A job that cannot be planned for, and what is behind it."""

    def __init__(self, refusal: PlanRefusal, detail: str) -> None:
        super().__init__(detail)
        self.refusal = refusal
