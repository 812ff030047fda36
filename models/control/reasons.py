"""Why the controller decides as it does, by the names that stand in ``ops.control_log.reason``."""

from __future__ import annotations

from dataclasses import dataclass

from include.domain.named_reason import NamedReason


class Reason(NamedReason):
    """Name of the rule that decided; docs/reasons.md is written from these."""

    PLAN = "plan", "the due step of the plan", "nothing"
    REACTIVE = "reactive", "an evaluation wants it, by what was measured", "nothing"
    PIN = "pin", "a person has pinned the parallelism", "nothing"
    SCHEDULE = (
        "schedule",
        "what runs is outside of a schedule that is on; the detail names it",
        "nothing, or `schedules` in the job's limits",
    )
    UNDO = "undo", "a person takes our last rescale back (`tidewise undo`)", "nothing"
    AS_DESIRED = "as_desired", "the job was asked for what is wanted already", "nothing"
    LEFT_AS_IS = (
        "left_as_is",
        ("the job is late, or its load is not seen; said once in six hours"),
        "see the detail",
    )
    NEW_JOB_ID = "new_job_id", "a new job: it is taken over as it is", "nothing"
    KEPT = "kept", "a job's history is written down again", "nothing"
    IN_FLIGHT = "in_flight", "a request is on its way; the detail says how long Flink may wait", "nothing"
    RUNS_AS_REQUESTED = "runs_as_requested", "Flink runs what was requested", "nothing"
    RESTORE = (
        "restore",
        "Flink lost a parallelism that the resource holds (FLINK-38770)",
        "nothing",
    )
    LATE_REQUEST = (
        "late_request",
        "a request that was given up has arrived after all, within 16 minutes",
        "nothing",
    )
    NOT_RECEIVED = "not_received", "a request was lost", "nothing"
    SLOTS_MISSING = (
        "slots_missing",
        ("a rise waits for slots to come; unwanted after `clusters.<name>.slots_wait_s` it is withdrawn"),
        "nothing while nodes come; else add TaskManagers",
    )
    NOT_FILLED = (
        "not_filled",
        "Flink did not reach the parallelism in time; the bound is withdrawn",
        ("are there enough slots? Does the job restart?"),
    )
    JOB_FAILS = (
        "job_fails",
        ("the job restarts with a new exception since the request, and is returned"),
        "mend its cause, then `tidewise lift`",
    )
    CHECKPOINT_FIRST = "checkpoint_first", "Flink before 1.20: a checkpoint is asked for before the request", "nothing"
    SAVEPOINT_IN_PROGRESS = (
        "savepoint_in_progress",
        "a rescale would end it",
        "nothing",
    )
    CHECKPOINTS_OFF = (
        "checkpoints_off",
        "the job takes no checkpoints: a rescale would lose its state",
        "`execution.checkpointing.interval`",
    )
    NO_CHECKPOINT = "no_checkpoint", "the job has completed none yet", "wait for the first one"
    CHECKPOINT_TOO_OLD = (
        "checkpoint_too_old",
        "the last one is older than `apply.checkpoint_max_age_s`",
        "see the job's checkpoints in Flink",
    )
    CHECKPOINTS_FAILING = (
        "checkpoints_failing",
        "one has failed since the last completed one",
        "see the job's checkpoints in Flink",
    )
    CHECKPOINTS_UNKNOWN = (
        "checkpoints_unknown",
        "Flink does not tell the job's checkpoints",
        "see the detail: a proxy may hide them",
    )
    HEAP_FULL = "heap_full", "a fall, while a TaskManager's heap is full", "nothing, or `apply.memory.heap_share_max`"
    GC_PRESSURE = (
        "gc_pressure",
        "a fall, while a TaskManager is busy with garbage collection",
        "nothing, or `apply.memory.gc_share_max`",
    )
    STATE_TOO_LARGE = (
        "state_too_large",
        "a fall after which a slot would hold too much state",
        "nothing, or `apply.memory.state_per_slot_max_mib`",
    )
    MEMORY_UNKNOWN = (
        "memory_unknown",
        "a fall, and Flink does not tell memory or state",
        "see the detail",
    )
    REFUSED_BY_FLINK = "refused_by_flink", "Flink has refused the request; `answer` has its words", "see the answer"
    WITHDRAWN_BEFORE_SENDING = "withdrawn_before_sending", "something changed between decision and request", "nothing"
    WORSE_THAN_BEFORE = (
        "worse_than_before",
        "the rescale did harm: back to the last good parallelism",
        "look at the job",
    )
    MODE_OFF = (
        "mode_off",
        (
            "the mode is off, or the settings cannot be read, no longer name the cluster, or changed "
            "address, actuator, lake or raw folder"
        ),
        "see the detail",
    )
    SETTINGS_CHANGED = (
        "settings_changed",
        ("the settings were changed within two seconds, or a pin within `settings.loosen_after_s`"),
        "nothing",
    )
    ON_HOLD = "on_hold", "a person holds the job, its cluster or everything", "`tidewise release`"
    FOREIGN_CHANGE = (
        "foreign_change",
        (
            "somebody else, or nobody knows who, changed the job or took a request back; it is held for "
            "`apply.foreign_change_hold_h`"
        ),
        "who was it?",
    )
    HELD = (
        "held",
        ("the hold after such a change or an unfilled request; or rows of the control log are missing"),
        "wait; was the lake restored from before?",
    )
    OTHER_AUTOSCALER = (
        "other_autoscaler",
        "another autoscaler is active on the job",
        "switch one of the two off; the detail has the keys",
    )
    AUTOSCALER_UNKNOWN = (
        "autoscaler_unknown",
        "Flink does not tell the configuration of cluster or job",
        "let the login and proxies pass `/jobmanager/config` and `/jobs/:id/config`",
    )
    NO_RESOURCE = (
        "no_resource",
        "no resource has the job's id in its status",
        "see `[clusters.<name>.kubernetes]`: namespace, kind, deployment",
    )
    AMBIGUOUS_RESOURCE = (
        "ambiguous_resource",
        "several resources have the job's id",
        "name the job's in `kubernetes.resources`",
    )
    NO_RIGHTS = (
        "no_rights",
        "the login may not read or patch the resources",
        "`tidewise manifests`, and apply its rbac.yaml",
    )
    UNREADABLE_RESOURCE = (
        "unreadable_resource",
        "its map of overrides, or its least parallelism, cannot be read",
        "see the detail",
    )
    OPERATOR_BUSY = (
        "operator_busy",
        "the operator has not carried out the last change of the resource",
        "wait; does the operator run?",
    )
    JOB_ENDED = "job_ended", "the operator reports the job as finished, failed or cancelled", "see the resource"
    NOT_IN_PLACE = (
        "not_in_place",
        "the operator would stop and start the job for the step",
        "see the detail, or [accept the cost](kubernetes.md#what-is-refused)",
    )
    UPGRADE_LOSES_MAP = (
        "upgrade_loses_map",
        "the last upgrade lost the parallelism asked for (FLINK-38770)",
        "make rescales in place possible",
    )
    LOWER_BOUNDS = (
        "lower_bounds",
        "the operator would overwrite a lower bound that somebody has set in Flink",
        "take it away in Flink, or scale the job by hand",
    )
    AUTOSCALER_OFF = (
        "autoscaler_off",
        "mode guide, but the operator's autoscaler does not act on the job",
        'switch it on, or `kubernetes.mode = "act"`',
    )
    NEEDS_APPROVAL = "needs_approval", "mode approve: the step waits for a person's yes", "`tidewise approve`"
    DENIED = "denied", "a person has said no to the step", "nothing"
    UNKNOWN_JOB = "unknown_job", "the cluster has no job of that name", "is it running?"
    AMBIGUOUS_NAME = "ambiguous_name", "two running jobs of the cluster have the same name", "rename one"
    NOT_RUNNING = "not_running", "the job, or one of its vertices, does not run", "see Flink"
    NO_REQUIREMENTS = "no_requirements", "the scheduler takes no requirements", "`jobmanager.scheduler: adaptive`"
    DEFAULT_SCHEDULER = (
        "default_scheduler",
        "Flink runs without the adaptive scheduler",
        "`jobmanager.scheduler: adaptive`",
    )
    REACTIVE_MODE = "reactive_mode", "Flink gives the job every slot that it finds", "remove `scheduler-mode: reactive`"
    FLINK_TOO_OLD = (
        "flink_too_old",
        "Flink before 1.18 cannot rescale a running job through REST",
        "upgrade Flink; until then plans are advice",
    )
    MISSING_REQUIREMENT = "missing_requirement", "Flink names no requirement for a vertex", "see Flink"
    UNREADABLE_REPLY = "unreadable_reply", "the job's replies cannot be read", "see the detail"
    UNKNOWN_OPERATOR = (
        "unknown_operator",
        "the job's operators are not those of the step",
        "nothing: after the next training",
    )
    NO_REPLY = "no_reply", "the cluster did not reply", "is it up?"
    NOT_OBSERVED = "not_observed", "an error of Tidewise's own; the log has more", "report it"
    NOT_RECORDED = "not_recorded", "the decision cannot be written down", "see the detail"
    NOT_DECIDED = "not_decided", "an error of Tidewise's own in the decision", "report it"
    HISTORY_UNKNOWN = (
        "history_unknown",
        "the job's last row in the control log cannot be read",
        "see the detail and the controller's log",
    )
    CLOCK_DIFFERS = (
        "clock_differs",
        "the controller's clock is more than three hours from the JobManager's",
        "set the clock that is wrong",
    )
    UNUSABLE_INTENTION = (
        "unusable_intention",
        "a policy wants an impossible parallelism (NaN, zero, a fraction)",
        "report it to who wrote the policy",
    )
    EXPIRED = "expired", "the step is past its validity", "nothing"
    STALE_PLAN = "stale_plan", "the plan is older than `apply.max_plan_age_h`", "does `tidewise_hour` run?"
    STALE_METRICS = "stale_metrics", "no observation within `planner.max_input_age_h`", "is the job running?"
    LOAD_OUTSIDE_BAND = (
        "load_outside_band",
        "the load is further from the forecast than `apply.load_band`",
        "look at the job",
    )
    OUTSIDE_BAND = (
        "outside_band",
        "a measured figure is outside the step's band",
        "nothing",
    )
    VETOED = (
        "vetoed",
        "your team's review said no; the detail has its name and reason",
        "see [reviews](limits.md#rules-of-your-own)",
    )
    REVIEW_FAILED = (
        "review_failed",
        "a review was not loaded, raised, took longer than a second, or said what it may not",
        "see the detail and the controller's log",
    )
    BLOCKED_TARGET = (
        "blocked_target",
        "this parallelism did harm lately, or was refused",
        "nothing for `apply.block_h`; where the job failed under it, `tidewise lift`",
    )
    EXCEEDS_SLOTS = "exceeds_slots", "more slots than `slots_max`", "raise it, if you want that"
    EXCEEDS_BUDGET = (
        "exceeds_budget",
        "more slots than `slots_total` for all jobs of the cluster",
        "raise it, if you want that",
    )
    BUDGET_UNKNOWN = "budget_unknown", "how many slots of the budget are used is unknown", "see Flink"
    NO_FREE_SLOTS = (
        "no_free_slots",
        ("more slots than are free or left by jobs of a higher priority"),
        "add TaskManagers",
    )
    FREE_SLOTS_UNKNOWN = (
        "free_slots_unknown",
        "how many slots are free is unknown",
        "does Flink answer `/overview`? Set `elastic`",
    )
    FALLS_OFF = "falls_off", "scale-downs are switched off for the job", "nothing"
    BLACKOUT = "blackout", "a blackout window is on", "nothing"
    COOLDOWN = "cooldown", "the last change was less than `limits.cooldown_s` ago", "nothing"
    RESCALES_PER_HOUR = "rescales_per_hour", "as many requests within an hour as the limit allows", "nothing"
    RESCALES_PER_DAY = "rescales_per_day", "as many requests within a day as the limit allows", "nothing"
    CONCURRENT_RESCALES = (
        "concurrent_rescales",
        ("as many jobs are being rescaled as `limits.concurrent_rescales` and `concurrent_share` allow"),
        "nothing",
    )
    NEIGHBOUR_RESCALES = (
        "neighbour_rescales",
        "a job that feeds it, or that it feeds, is being rescaled or catches up",
        "nothing",
    )
    UNKNOWN_REASON = (
        "unknown_reason",
        "a reason that this release does not know",
        "nothing",
    )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something is not done.

    Attributes:
        reason: its name.
        detail: one sentence for a person.
    """

    reason: Reason
    detail: str = ""
