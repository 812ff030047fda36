"""Letting a job, or a parallelism under which it failed, be tried again."""

from __future__ import annotations

from collections.abc import Iterable

from fleet.waiting import Block
from include.control.interventions import Intervention, UserAction, record_intervention
from include.control.lifted_blocks import LiftedBlock, LiftedBlockStore
from include.settings import Settings


class NothingBlockedError(ValueError):
    """Nothing of the job waits for a person."""


def lift_blocks(settings: Settings, blocks: Iterable[Block], *, by: str, reason: str, now_s: float) -> list[str]:
    """Lift blocks that only a person lifts; returns what may be tried again, as a person reads it.

    Raises:
        NothingBlockedError: there is none.
        StoreUnreadableError: not all were lifted.
    """
    store, result = LiftedBlockStore(settings.paths.lake), list[str]()
    for one in blocks:
        store.write(LiftedBlock(one.cluster, one.job, one.block_id, by, now_s))
        shown = f"{one.target} may be tried again"
        detail = f"{shown}: {one.because}" if one.because else shown
        act = Intervention(now_s, UserAction.LIFT, f"{one.cluster}/{one.job}", by, reason, detail)
        record_intervention(settings.paths.lake, act)
        result.append(shown)
    if not result:
        raise NothingBlockedError("nothing of the job waits for a person")
    return result
