"""Rules that raw input has to meet, by the names that stand in ``ops.quarantine.reason``."""

from __future__ import annotations

from include.domain.named_reason import NamedReason


class Rule(NamedReason):
    """A rule whose break keeps a file, a line, a reply or a value out; docs/reasons.md is written from these."""

    MALFORMED_JSON = "malformed_json", "the line or the reply is not JSON, or two records share a line"
    BAD_ENCODING = "bad_encoding", "the line holds bytes that are no UTF-8"
    MISSING_FIELD = "missing_field", "a field of the envelope or of the reply is missing"
    WRONG_TYPE = (
        "wrong_type",
        "a field or value has the wrong type, or vertices have no ids of their own",
    )
    EMPTY_BODY = "empty_body", "the reply is empty"
    CLUSTER_MISMATCH = "cluster_mismatch", "the line names another cluster than its directory"
    UNKNOWN_KIND = "unknown_kind", "the kind of reply is not known"
    BAD_ID = "bad_id", "a job id or vertex id is not 32 hexadecimal digits, or a reply of a whole job has a vertex id"
    JOB_MISMATCH = (
        "job_mismatch",
        "the reply is of another job (`jid`) than its line says",
    )
    BAD_GRAPH = "bad_graph", "a vertex of a plan is fed by one that the plan does not name"
    TIME_OUT_OF_RANGE = (
        "time_out_of_range",
        ("a time before the year 2000, or after the observation by more than `ingest.max_clock_skew_s`"),
    )
    UNKNOWN_VERTEX = "unknown_vertex", "no job reply of that time names the vertex"
    HTTP_ERROR = "http_error", "Flink answered with an error (usual during a restart)"
    CLOCK_JUMP = "clock_jump", "observed after the hour in which its file was written"
    TOO_LATE = "too_late", "observed longer before its file than `ingest.late_allowance_h`"
    VALUE_NAN = "value_nan", "one value is NaN; the rest of its row is kept"
    VALUE_NEGATIVE = "value_negative", "one value is below zero; the rest of its row is kept"
    VALUE_HUGE = (
        "value_huge",
        "one value is above 1e15, or a subtask's share of time above 105%; the rest of its row is kept",
    )
    DUPLICATE_CONFLICT = "duplicate_conflict", "two different replies for the same vertex and time: the first is kept"
    CORRUPT_FILE = "corrupt_file", "a damaged compressed file; what decompresses before the damage is kept"
    UNREADABLE_FILE = (
        "unreadable_file",
        "it cannot be opened: permission, a link that leads nowhere or in a circle, no regular file",
    )
    UNREADABLE_FOLDER = (
        "unreadable_folder",
        "it cannot be listed: permission, a link that leads nowhere or in a circle",
    )
    MISPLACED_FILE = (
        "misplaced_file",
        "a file or folder that is not at `cluster=<name>/date=YYYY-MM-DD/hour=HH/<name>.jsonl` or `.jsonl.gz`",
    )
    EMPTY_FILE = "empty_file", "nothing in the file"
    FILE_TOO_LARGE = "file_too_large", "more than 1 GiB as stored: cut it into several"
    NOT_NEWER = "not_newer", "in the controller alone: observed at the same time as the reply before, or earlier"
    MISSING_SUBTASKS = "missing_subtasks", "in the controller alone: an aggregate over fewer subtasks than run"
