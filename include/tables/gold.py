"""Gold tables: models, forecasts, plans and applied steps."""

from __future__ import annotations

from include.tables.plan_row import PLAN_COLUMNS
from include.tables.schema import PARALLELISM, Table

MODEL_VERSIONS = Table(
    "gold.model_versions",  # trainings, and what the gate said of them
    {
        "as_of": "TIMESTAMP",
        "model_version": "STRING",  # hash of inputs and parameters
        "trained_from": "TIMESTAMP",
        "jobs": "INT",
        "operators": "INT",
        "observations": "BIGINT",
        "observations_hash": "STRING",  # content of the training input, to recognise a rerun
        "capacity_mape": "DOUBLE",  # held back: mean |predicted - measured| / measured
        "recovery_mape": "DOUBLE",
        "latency_mape": "DOUBLE",
        "champion_before": "STRING",
        "champion_capacity_mape": "DOUBLE",  # of the champion on the same held-back rows
        "gate": "STRING",  # verdict: first, passed, failed, kept, reviewed
        "gate_detail": "STRING",
        "compared": "BIGINT",  # rows on which the gate compared; 0: the verdict proves nothing
        "code_version": "STRING",
    },
    keys=("as_of",),
)

MODEL_JOBS = Table(
    "gold.model_jobs",  # the jobs that a training gave models of
    {
        "as_of": "TIMESTAMP",  # of the training
        "model_version": "STRING",
        "cluster": "STRING",
        "job": "STRING",
        "operators": "INT",
        "curves": "INT",  # operators with a capacity curve of their own
        "date": "DATE",  # of as_of
        "models_from": "STRING",  # model version that made its models; null: it has none
        "detail": "STRING",  # why they are of another training
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
        "operator": "STRING",  # the source
        "bin_start": "TIMESTAMP",
        "bin_s": "INT",
        "q10_per_s": "DOUBLE",
        "q50_per_s": "DOUBLE",
        "q90_per_s": "DOUBLE",
        "q95_per_s": "DOUBLE",
        "method": "STRING",
        "fallback_reason": "STRING",  # why its champion did not make it
        "forecast_version": "STRING",
        "date": "DATE",  # of as_of
        "event": "STRING",  # known event that the quantiles hold
        "event_factor": "DOUBLE",  # q50 with it over q50 without
        "event_spread": "DOUBLE",  # standard deviation of the logarithm of its factor
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
        "champion": "BOOLEAN",  # whether the forecasts until the end of the date are by it
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
        "stage": "STRING",  # which wrote it: plan, learn (by night) or profiling
        "as_of": "TIMESTAMP",  # of that stage
        "cluster": "STRING",
        "job": "STRING",
        "policy": "STRING",
        "memory": "STRING",  # JSON
        "date": "DATE",  # of as_of
    },
    keys=("stage", "as_of", "cluster", "job"),
    partition_by=("stage", "date"),  # so that stages which write at the same time do not meet
    checks={"stage_known": "stage IN ('learn', 'profiling', 'plan')"},
)

PROFILES = Table(
    "gold.profiles",  # what the profiling phase measured of a job, on the cluster that the settings name
    {
        "as_of": "TIMESTAMP",
        "cluster": "STRING",
        "job": "STRING",
        "kind": "STRING",  # step: a replay at one rate; capacity: under a backlog that never ends
        "step": "INT",  # of the replay, from 0; 0 for capacity
        "scale_out": "INT",  # workers = parallelism of every operator
        "rate_per_s": "DOUBLE",  # replayed over all sources; null for capacity
        "throughput_per_s": "DOUBLE",  # that the sources emitted; T_max of Phoebe for capacity
        "latency_ms": "DOUBLE",  # null for capacity
        "latency": "STRING",  # what it is of: end to end, or backlog age
        "adapter": "STRING",  # profiling.adapter: what ran the deployments
        "model_version": "STRING",  # of the champion
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
    # Append-only: one row per rescale that was confirmed and judged; training learns from all of them, so they are kept
    # for as long as models are trained (two years).
    "gold.rescale_outcomes",
    {
        "cluster": "STRING",
        "job": "STRING",
        "job_id": "STRING",
        "step_id": "STRING",
        "origin": "STRING",  # plan, reactive or pin
        "requested_at": "TIMESTAMP",
        "confirmed_at": "TIMESTAMP",
        "judged_at": "TIMESTAMP",
        "parallelism_from": PARALLELISM,
        "parallelism_to": PARALLELISM,
        "slots_from": "INT",
        "slots_to": "INT",
        "promised_recovery_s": "DOUBLE",  # by the plan
        "promised_capacity_per_s": "DOUBLE",
        "promised_load_q50_per_s": "DOUBLE",
        "promised_load_q90_per_s": "DOUBLE",
        "throughput_before_per_s": "DOUBLE",  # records that the sources emitted
        "throughput_after_per_s": "DOUBLE",
        "arriving_before_per_s": "DOUBLE",  # records that arrived at the sources
        "arriving_after_per_s": "DOUBLE",
        "backpressured_share_before": "DOUBLE",  # of the busiest source
        "backpressured_share_after": "DOUBLE",
        "lag_before_s": "DOUBLE",
        "lag_after_s": "DOUBLE",
        "restarts": "INT",  # failures between the two measurements
        "is_worse": "BOOLEAN",
        "detail": "STRING",  # one sentence for a person
        "rolled_back": "BOOLEAN",  # whether the job was returned
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
        "policy": "STRING",  # also static_max and clairvoyant, which cannot be chosen
        "days": "DOUBLE",  # that were scored
        "learning_days": "DOUBLE",  # replayed before them from a cold start, not scored
        "note": "STRING",  # set where there was less history than requested
        "rescales_per_day": "DOUBLE",
        "late_minutes_per_day": "DOUBLE",
        "lag_record_seconds": "DOUBLE",  # of all scored days, as are the next two
        "slot_hours": "DOUBLE",
        "cost": "DOUBLE",
        "cost_vs_clairvoyant": "DOUBLE",
        "recommended": "BOOLEAN",  # the cheapest by backtest.margin, else the one in use
        "in_use": "BOOLEAN",
        "error": "STRING",  # of a policy that failed on this job
        "model_version": "STRING",  # of the champion
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
        "slot_hours": "DOUBLE",  # the largest parallelism of the job's operators, over that time
        "late_known_s": "DOUBLE",  # of windows in which a source tells the age of its backlog
        "late_minutes": "DOUBLE",  # of these: with an age above planner.costs.late_after_s
        "load_mean_per_s": "DOUBLE",  # of all sources; of windows in which each of them tells it
        "load_max_per_s": "DOUBLE",
        "rescales": "INT",
        "restarts": "INT",
        "downtime_s": "DOUBLE",  # of both
        "steps_due": "INT",  # of plans that were the newest when the step's time came
        "steps_as_planned": "INT",  # of these: asked for, in a dry run too, and not taken back
        "date": "DATE",
    },
    keys=("cluster", "job", "date"),
    partition_by=("date",),
)

STEP_RESULTS = Table(
    "gold.step_results",  # steps that the controller decided on: what was promised beside what came
    {
        "cluster": "STRING",
        "job": "STRING",
        "step_id": "STRING",
        "origin": "STRING",  # plan, reactive or pin
        "apply_at": "TIMESTAMP",
        "effective_at": "TIMESTAMP",
        "ended_at": "TIMESTAMP",  # by the next step, by the plan, or as far as is known
        "status": "STRING",  # confirmed, rolled_back, rolling_back, failed, sent, dry_run, refused or waiting
        "outcome": "STRING",  # the same with its named reason
        "slots_from": "INT",
        "slots_to": "INT",
        "slots_ran": "DOUBLE",  # mean while it was in effect
        "load_q90_per_s": "DOUBLE",  # promised
        "load_max_per_s": "DOUBLE",  # came
        "p_late": "DOUBLE",
        "late_minutes_promised": "DOUBLE",
        "late_minutes": "DOUBLE",  # came
        "recovery_s": "DOUBLE",
        "took_s": "DOUBLE",  # downtime and catch-up of its rescale
        "date": "DATE",  # of apply_at
    },
    keys=("cluster", "job", "step_id", "apply_at"),
    partition_by=("date",),
)

EVENT_RESULTS = Table(
    "gold.event_results",  # what came of the events that people knew of, as the last report of a date saw it
    {
        "event": "STRING",  # name in the settings
        "cluster": "STRING",
        "job": "STRING",
        "operator": "STRING",  # a source of the job
        "announced": "STRING",  # factor or rate with its range
        "came": "STRING",
        "proposed": "STRING",  # what to write next time; empty while nobody knows
        "as_of": "TIMESTAMP",
        "date": "DATE",  # of as_of
    },
    keys=("event", "cluster", "job", "operator", "date"),
    partition_by=("date",),
)

CERTIFICATES = Table(
    "gold.certificates",  # what a day of a job's last ones cost, beside the least for the load that came
    {
        "as_of": "TIMESTAMP",
        "cluster": "STRING",
        "job": "STRING",
        "days": "DOUBLE",  # that are compared
        "measured_share": "DOUBLE",  # of the time, from which a day's cost is taken
        "cost": "DOUBLE",  # of a day, as measured, in the planner's own prices; so are the next three
        "least": "DOUBLE",  # lower bound of any policy, with the capacities that the models expect
        "least_low": "DOUBLE",  # with capacities at the ends of their interval of 80%
        "least_high": "DOUBLE",
        "ratio": "DOUBLE",  # cost over the least
        "ratio_low": "DOUBLE",
        "ratio_high": "DOUBLE",
        "regret": "DOUBLE",  # cost less the least, of a day
        "slot_hours": "DOUBLE",  # of a day of what ran; so are the next two
        "late_minutes": "DOUBLE",
        "rescales": "DOUBLE",
        "best_slot_hours": "DOUBLE",  # of a day of the bound's own choices; so are the next two
        "best_late_minutes": "DOUBLE",
        "best_rescales": "DOUBLE",
        "reason": "STRING",  # largest part of the regret, as a sentence
        "skipped": "STRING",  # why a job has none
        "model_version": "STRING",  # of the champion
        "code_version": "STRING",
        "date": "DATE",  # of as_of
    },
    keys=("as_of", "cluster", "job"),
    partition_by=("date",),
    checks={"certified_or_skipped": "cost IS NOT NULL OR skipped IS NOT NULL"},
)
