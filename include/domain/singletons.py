"""Operators that Flink runs as one subtask for good."""

SINGLETON_HELP = (
    "Flink runs it as one subtask whatever pipeline.max-parallelism is (a global operation of SQL, or a maximum set in "
    "the job): a key to group or join by, or aggregating in two phases, would split it"
)
