"""What callbacks of tasks remember: how the last run of each ended, for the fleet's health."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from include.orchestration.parameters import ParametersError

log = logging.getLogger(__name__)
_LONGEST = 300


def remember_failure(context: Any) -> None:
    """Remember that a task has failed for good (``on_failure_callback``); a person's wrong parameters are no fault."""
    cause = context.get("exception")
    if isinstance(cause, ParametersError):
        return
    text = str(cause or "no exception is known").strip().partition("\n")[0]
    _remember(context, error=text[:_LONGEST])


def remember_success(context: Any) -> None:
    """Remember that a task has ended well (``on_success_callback``), and which of its stages had nothing to do."""
    summaries = getattr(context["task_instance"].task, "summaries", {})
    from include.stage_warnings import is_empty, list_lost

    empty = [stage for stage, summary in summaries.items() if is_empty(stage, summary)]
    _remember(context, empty=empty, lost=[one for summary in summaries.values() for one in list_lost(summary)])


def _remember(context: Any, *, error: str = "", empty: Sequence[str] = (), lost: Sequence[str] = ()) -> None:
    from include.settings import load_settings
    from include.spark.submission import anchor_paths
    from include.stage_states import StageState, StageStates  # heavy for the parsing of DAGs

    task, dag = context["task_instance"], context.get("dag")
    is_scheduled = dag is None or getattr(dag, "schedule", None) is not None
    state = StageState(f"{task.dag_id}.{task.task_id}", time.time(), error, is_scheduled, list(empty), list(lost))
    try:
        StageStates(anchor_paths(load_settings()).paths.lake).write(state)
    except Exception as reason:  # it must neither fail a task nor hide why one failed
        log.warning("tidewise: the end of %s is not remembered: %s", state.task, str(reason).partition("\n")[0])
