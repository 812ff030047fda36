"""What policies remember of their jobs: ``gold.policy_memory``.

Plans hand a memory on from one to the next; the nightly learning and a profiling phase leave one for the next plan.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from models.hosting.memories import recall as recall_text
from models.policies.protocol import Policy
from spark_jobs.timestamps import as_of_slice

log = logging.getLogger(__name__)


def own_memories(stage: str, as_of: datetime) -> str:
    """Return the slice of gold.policy_memory that a stage replaces."""
    return f"stage = '{stage}' AND {as_of_slice(as_of)}"


def recall(chosen: Policy[Any], name: str, memory: str | None, memory_policy: str | None) -> Any:
    """Return a policy's memory of a job; the first one where there is none, or only that of another policy."""
    remembered, problem = recall_text(chosen, name, memory, memory_policy)
    if problem:
        log.warning("%s", problem)
    return remembered
