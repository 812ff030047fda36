"""Names of what decides on a job, as they stand in ``ops.control_log.reason``."""

from __future__ import annotations

from typing import Final

REASONS: Final = frozenset(
    {
        # what is done
        *(
            "plan",
            "reactive",
            "pin",
            "restore",
            "runs_as_requested",
            "as_desired",
            "left_as_is",
            "in_flight",
            "new_job_id",
            "late_request",
            "kept",
        ),
        # what was asked for and did not come about
        *("not_received", "not_filled", "worse_than_before", "refused_by_flink", "withdrawn_before_sending"),
        "job_fails",
        # what Flink says of the job before a request
        *("checkpoints_unknown", "checkpoints_off", "no_checkpoint", "savepoint_in_progress", "checkpoints_failing"),
        *("checkpoint_too_old", "checkpoint_first", "memory_unknown", "heap_full", "gc_pressure", "state_too_large"),
        # who has to be asked
        *("mode_off", "settings_changed", "on_hold", "held", "foreign_change", "other_autoscaler"),
        "autoscaler_unknown",
        *("needs_approval", "denied"),
        # the job
        *("unknown_job", "not_running", "no_requirements", "ambiguous_name", "unreadable_reply"),
        *("reactive_mode", "flink_too_old", "default_scheduler"),
        *("missing_requirement", "unknown_operator", "no_reply", "not_observed", "not_recorded"),
        *("clock_differs", "history_unknown"),
        # the resource of its deployment
        *("no_resource", "ambiguous_resource", "no_rights", "operator_busy", "job_ended", "not_in_place"),
        *("upgrade_loses_map", "unreadable_resource", "autoscaler_off", "lower_bounds"),
        # the intention
        *("unusable_intention", "not_decided"),
        *("expired", "stale_plan", "stale_metrics", "load_outside_band", "blocked_target"),
        *("vetoed", "review_failed"),
        # limits
        *("exceeds_slots", "exceeds_budget", "budget_unknown", "no_free_slots", "free_slots_unknown", "falls_off"),
        *("blackout", "cooldown", "rescales_per_hour", "rescales_per_day", "concurrent_rescales"),
    }
)
