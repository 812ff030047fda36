"""Gold tables: models, forecasts, plans and applied steps."""

from __future__ import annotations

from include.tables.plan_row import PLAN_COLUMNS
from include.tables.schema import PARALLELISM, Table

MODEL_VERSIONS = Table(
    "gold.model_versions",  # trainings, and what the gate said of them
    {
        "as_of": "TIMESTAMP",
        "model_version": "STRING",
        "trained_from": "TIMESTAMP",
        "jobs": "INT",
        "operators": "INT",
        "observations": "BIGINT",
        "observations_hash": "STRING",  # of the training input
        "capacity_mape": "DOUBLE",  # mean |predicted - measured| / measured, held back
        "recovery_mape": "DOUBLE",
        "latency_mape": "DOUBLE",
        "champion_before": "STRING",
        "champion_capacity_mape": "DOUBLE",  # the champion's, on the same rows
        "gate": "STRING",  # first, passed, failed, kept, reviewed
        "gate_detail": "STRING",
        "compared": "BIGINT",  # rows compared; 0: the verdict proves nothing
        "code_version": "STRING",
    },
    keys=("as_of",),
)

MODEL_JOBS = Table(
    "gold.model_jobs",  # the jobs that a training gave models of
    {
        "as_of": "TIMESTAMP",
        "model_version": "STRING",
        "cluster": "STRING",
        "job": "STRING",
        "operators": "INT",
        "curves": "INT",  # operators with a curve of their own
        "date": "DATE",  # of as_of
        "models_from": "STRING",  # version that made its models; null: none
        "detail": "STRING",
    },
    keys=("as_of", "cluster", "job"),
    partition_by=("date",),
)

FORECASTS = Table(
    "gold.forecasts",  # quantiles of the load of each source over the next day
    {
        "as_of": "TIMESTAMP",
        "cluster": "STRING",
        "job": "STRING",
        "operator": "STRING",
        "bin_start": "TIMESTAMP",
        "bin_s": "INT",
        "q10_per_s": "DOUBLE",
        "q50_per_s": "DOUBLE",
        "q90_per_s": "DOUBLE",
        "q95_per_s": "DOUBLE",
        "method": "STRING",
        "fallback_reason": "STRING",  # why the champion did not make it
        "forecast_version": "STRING",
        "date": "DATE",  # of as_of
        "event": "STRING",  # known event within the quantiles
        "event_factor": "DOUBLE",  # q50 with it over q50 without
        "event_spread": "DOUBLE",  # standard deviation of ln(factor)
    },
    keys=("as_of", "cluster", "job", "operator", "bin_start"),
    partition_by=("date",),
    checks={"quantiles_ordered": "q10_per_s <= q50_per_s AND q50_per_s <= q90_per_s AND q90_per_s <= q95_per_s"},
)

FORECAST_SCORES = Table(
    "gold.forecast_scores",  # errors of forecast methods on each source, by a rolling origin, once a day
    {
        "as_of": "TIMESTAMP",
        "cluster": "STRING",
        "job": "STRING",
        "operator": "STRING",
        "method": "STRING",
        "origins": "INT",
        "mase": "DOUBLE",
        "pinball_q90": "DOUBLE",  # divided by the mean rate
        "coverage_q90": "DOUBLE",
        "champion": "BOOLEAN",  # in use until the date ends
        "date": "DATE",
    },
    keys=("as_of", "cluster", "job", "operator", "method"),
    partition_by=("date",),
)

PLANS = Table(
    "gold.plans",  # steps of each job: which parallelism, when, and why
    {**PLAN_COLUMNS, "date": "DATE"},  # of as_of
    keys=("as_of", "step_id"),
    partition_by=("date",),
    checks={
        "status_known": "status IN ('planned', 'hold', 'refused')",
        "never_for_the_past": "status <> 'planned' OR apply_at >= as_of",
        "refused_with_reason": "status <> 'refused' OR refusal IS NOT NULL",
    },
)

POLICY_MEMORY = Table(
    "gold.policy_memory",  # what a policy remembers of a job from one plan to the next
    {
        "stage": "STRING",  # plan, learn or profiling
        "as_of": "TIMESTAMP",
        "cluster": "STRING",
        "job": "STRING",
        "policy": "STRING",
        "memory": "STRING",
        "date": "DATE",  # of as_of
    },
    keys=("stage", "as_of", "cluster", "job"),
    partition_by=("stage", "date"),  # so that stages which write at the same time do not meet
    checks={"stage_known": "stage IN ('learn', 'profiling', 'plan')"},
)

PROFILES = Table(
    "gold.profiles",  # what profiling measured of a job
    {
        "as_of": "TIMESTAMP",
        "cluster": "STRING",
        "job": "STRING",
        "kind": "STRING",  # step: at one rate; capacity: under an endless backlog
        "step": "INT",  # from 0; 0 for capacity
        "scale_out": "INT",  # parallelism of every operator
        "rate_per_s": "DOUBLE",  # of all sources; null for capacity
        "throughput_per_s": "DOUBLE",  # of the sources; for capacity Phoebe's T_max
        "latency_ms": "DOUBLE",
        "latency": "STRING",  # end to end, or backlog age
        "adapter": "STRING",
        "model_version": "STRING",
        "code_version": "STRING",
        "date": "DATE",  # of as_of
    },
    keys=("as_of", "cluster", "job", "kind", "step", "scale_out"),
    partition_by=("date",),
    checks={
        "kind_known": "kind IN ('step', 'capacity')",
        "replayed_at_a_rate": "kind = 'capacity' OR rate_per_s > 0",
        "scale_out_positive": "scale_out >= 1",
    },
)

RESCALE_OUTCOMES = Table(
    # Append-only: rescales that were confirmed and judged; training learns from them.
    "gold.rescale_outcomes",
    {
        "cluster": "STRING",
        "job": "STRING",
        "job_id": "STRING",
        "step_id": "STRING",
        "origin": "STRING",  # plan, reactive, pin
        "requested_at": "TIMESTAMP",
        "confirmed_at": "TIMESTAMP",
        "judged_at": "TIMESTAMP",
        "parallelism_from": PARALLELISM,
        "parallelism_to": PARALLELISM,
        "slots_from": "INT",
        "slots_to": "INT",
        "promised_recovery_s": "DOUBLE",
        "promised_capacity_per_s": "DOUBLE",
        "promised_load_q50_per_s": "DOUBLE",
        "promised_load_q90_per_s": "DOUBLE",
        "throughput_before_per_s": "DOUBLE",  # of the sources
        "throughput_after_per_s": "DOUBLE",
        "arriving_before_per_s": "DOUBLE",  # at the sources
        "arriving_after_per_s": "DOUBLE",
        "backpressured_share_before": "DOUBLE",  # of the busiest source
        "backpressured_share_after": "DOUBLE",
        "lag_before_s": "DOUBLE",
        "lag_after_s": "DOUBLE",
        "restarts": "INT",  # failures between the measurements
        "is_worse": "BOOLEAN",
        "detail": "STRING",
        "rolled_back": "BOOLEAN",
        "plan_as_of": "TIMESTAMP",
        "model_version": "STRING",
        "code_version": "STRING",
        "date": "DATE",  # of judged_at
    },
    keys=("cluster", "job", "step_id", "confirmed_at"),
    partition_by=("date",),
)

BACKTESTS = Table(
    "gold.backtests",  # what a job's last days would have cost under each policy
    {
        "as_of": "TIMESTAMP",
        "cluster": "STRING",
        "job": "STRING",
        "policy": "STRING",  # also static_max and clairvoyant
        "days": "DOUBLE",
        "learning_days": "DOUBLE",  # replayed before the scored days
        "note": "STRING",  # set on a short history
        "rescales_per_day": "DOUBLE",
        "late_minutes_per_day": "DOUBLE",
        "lag_record_seconds": "DOUBLE",  # of all scored days, as slot_hours and cost
        "slot_hours": "DOUBLE",
        "cost": "DOUBLE",
        "cost_vs_clairvoyant": "DOUBLE",
        "recommended": "BOOLEAN",  # cheaper by backtest.margin, else in use
        "in_use": "BOOLEAN",
        "error": "STRING",
        "model_version": "STRING",
        "code_version": "STRING",
        "date": "DATE",  # of as_of
    },
    keys=("as_of", "cluster", "job", "policy"),
    partition_by=("date",),
    checks={"scored_or_failed": "cost IS NOT NULL OR error IS NOT NULL"},
)

JOB_DAYS = Table(
    "gold.job_days",  # how each job ran on each date, and what was due
    {
        "cluster": "STRING",
        "job": "STRING",
        "until": "TIMESTAMP",  # windows until then are counted
        "measured_s": "DOUBLE",  # of windows whose slots are known
        "slot_hours": "DOUBLE",  # of that time
        "late_known_s": "DOUBLE",  # of windows with an age of the backlog
        "late_minutes": "DOUBLE",  # with an age above planner.costs.late_after_s
        "load_mean_per_s": "DOUBLE",  # of windows in which all sources tell it
        "load_max_per_s": "DOUBLE",
        "rescales": "INT",
        "restarts": "INT",
        "downtime_s": "DOUBLE",
        "steps_due": "INT",  # of the newest plan of their time
        "steps_as_planned": "INT",  # asked for, in a dry run too, and not taken back
        "date": "DATE",
    },
    keys=("cluster", "job", "date"),
    partition_by=("date",),
)

STEP_RESULTS = Table(
    "gold.step_results",  # steps decided on: what was promised beside what came
    {
        "cluster": "STRING",
        "job": "STRING",
        "step_id": "STRING",
        "origin": "STRING",  # plan, reactive, pin
        "apply_at": "TIMESTAMP",
        "effective_at": "TIMESTAMP",
        "ended_at": "TIMESTAMP",  # by the next step or the plan, as far as is known
        "status": "STRING",  # confirmed, rolled_back, rolling_back, failed, sent, dry_run, refused, waiting
        "outcome": "STRING",
        "slots_from": "INT",
        "slots_to": "INT",
        "slots_ran": "DOUBLE",
        "load_q90_per_s": "DOUBLE",
        "load_max_per_s": "DOUBLE",
        "p_late": "DOUBLE",
        "late_minutes_promised": "DOUBLE",
        "late_minutes": "DOUBLE",
        "recovery_s": "DOUBLE",
        "took_s": "DOUBLE",  # downtime and catch-up
        "date": "DATE",  # of apply_at
    },
    keys=("cluster", "job", "step_id", "apply_at"),
    partition_by=("date",),
)

EVENT_RESULTS = Table(
    "gold.event_results",  # what came of known events, by the last report of a date
    {
        "event": "STRING",
        "cluster": "STRING",
        "job": "STRING",
        "operator": "STRING",
        "announced": "STRING",  # factor or rate, with range
        "came": "STRING",
        "proposed": "STRING",  # what to write next time
        "as_of": "TIMESTAMP",
        "date": "DATE",  # of as_of
    },
    keys=("event", "cluster", "job", "operator", "date"),
    partition_by=("date",),
)

CERTIFICATES = Table(
    "gold.certificates",  # what a job's last days cost, beside the least for the load that came
    {
        "as_of": "TIMESTAMP",
        "cluster": "STRING",
        "job": "STRING",
        "days": "DOUBLE",
        "measured_share": "DOUBLE",  # of the time
        "cost": "DOUBLE",  # of a day at planner.costs, as the least
        "least": "DOUBLE",  # lower bound of any policy, with expected capacities
        "least_low": "DOUBLE",  # with capacities at an end of their 80% interval
        "least_high": "DOUBLE",
        "ratio": "DOUBLE",
        "ratio_low": "DOUBLE",
        "ratio_high": "DOUBLE",
        "regret": "DOUBLE",
        "slot_hours": "DOUBLE",  # of a day, of what ran
        "late_minutes": "DOUBLE",
        "rescales": "DOUBLE",
        "best_slot_hours": "DOUBLE",  # best_*: of the bound's policy
        "best_late_minutes": "DOUBLE",
        "best_rescales": "DOUBLE",
        "reason": "STRING",  # largest part of the regret
        "skipped": "STRING",
        "model_version": "STRING",
        "code_version": "STRING",
        "date": "DATE",  # of as_of
    },
    keys=("as_of", "cluster", "job"),
    partition_by=("date",),
    checks={"certified_or_skipped": "cost IS NOT NULL OR skipped IS NOT NULL"},
)
