"""The evaluation of a job whose policy reacts: it decides here, from the windows up to now, and not with the plans."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from controller.view.plan_rows import Remembered
from include.policy_catalogue import entry_of
from include.settings import Settings
from models.job_models import JobModels
from models.policies.live_situation import build_live_situation
from models.policies.protocol import Policy, Schedule
from models.policies.registry import memory_codec, policy
from models.policies.renamed_memory import rename_operators
from models.policies.tidewise.snapshot import Snapshot

log = logging.getLogger(__name__)


def decide(
    name: str,
    snapshot: Snapshot,
    remembered: Remembered | None,
    settings: Settings,
    *,
    models: JobModels | None,
    job: str,
    renamed: Mapping[str, str] | None = None,
) -> tuple[dict[str, int], str, Remembered | None]:
    """Return operator -> parallelism that a policy wants, why, and what it remembers.

    A job that does not run is not asked about: its windows are read when it runs again.

    Args:
        name: of the policy.
        snapshot: the job, whose observations reach back ``planner.observed_h`` hours.
        remembered: by the last evaluation; that of another policy counts as none.
        settings: of the run.
        models: of the job; None when there are none.
        job: ``cluster/job``.
        renamed: names before -> present names, of a job that was deployed again since the last evaluation.
    """
    running = dict(snapshot.running)
    if not snapshot.up:
        return running, "the job is not running", remembered
    within = snapshot.observations.since(snapshot.now_s - 3600.0 * settings.planner.observed_h)
    if not len(within):
        return running, "no window of it was seen lately", remembered
    chosen = policy(name, settings.parameters_of(name, job))
    situation = build_live_situation(
        snapshot.now_s,
        snapshot.graph,
        running,
        within,
        models=models if entry_of(name).reads_models else None,
        slots_max=snapshot.slots_max,
        options=settings.planner,
        seed=zlib.crc32(f"{job}/{snapshot.now_s}".encode()),
    )
    recalled = _recall(chosen, name, remembered)
    if renamed is not None:
        recalled = rename_operators(recalled, renamed, renamed)
    schedule, memory = chosen.decide(situation, recalled)
    text = "" if memory is None else memory_codec(name).dump(memory)
    return _first_step(schedule), schedule.decisions[0].reason, Remembered(name, text)


def _recall(chosen: Policy[Any], name: str, remembered: Remembered | None) -> Any:
    first = chosen.first_memory()
    if remembered is None or remembered.policy != name or not remembered.memory:
        return first
    try:
        return memory_codec(name).load(type(first), remembered.memory)
    except ValueError as error:  # written by another release
        log.warning("policy %s starts afresh: its memory cannot be read: %s", name, error)
        return first


def _first_step(schedule: Schedule) -> dict[str, int]:
    target = np.asarray(schedule.decisions[0].step.parallelism_to).tolist()
    return dict(zip(schedule.operators, target, strict=True))
