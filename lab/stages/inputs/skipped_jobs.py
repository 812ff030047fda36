"""Why the stages beside the plan leave a job out, by the names that their summaries count."""

from __future__ import annotations

from include.domain.named_reason import NamedReason

_NO_MODEL = "no_model", "the champion does not know the job"
_UNKNOWN_OPERATOR = "unknown_operator", "the job's graph cannot be read"


class LearnSkip(NamedReason):
    """Why a policy has learnt nothing of a job; docs/policies.md is written from these."""

    NO_MODEL = "no_model", "the champion does not know the job; it learns after the next training"
    NOTHING_LEARNT = "nothing_learnt", "no usable window in the look-back, or no operator with a capacity model"
    UNKNOWN_OPERATOR = _UNKNOWN_OPERATOR
    POLICY_FAILED = "policy_failed", "the policy raised an error: see the log of the task"


class ProfilingSkip(NamedReason):
    """Why a job has no profile; docs/policies.md is written from these."""

    NO_LOAD = "no_load", "no load was seen that could be replayed"
    NO_MODEL = _NO_MODEL
    UNKNOWN_OPERATOR = _UNKNOWN_OPERATOR
    PROFILING_FAILED = "profiling_failed", "the adapter failed: see the log of the task"


class BacktestSkip(NamedReason):
    """Why policies are not compared on a job; docs/policies.md is written from these."""

    NO_MODEL = _NO_MODEL
    SHORT_HISTORY = (
        "short_history",
        "less than `backtest.history_days_min` days; up to the full length a note says how much there was",
    )
    NO_LOAD = "no_load", "the rate of a source was never measured"
    UNKNOWN_OPERATOR = _UNKNOWN_OPERATOR
