"""Removal of lifts whose block the log names no more: until then a job would be blocked again without them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from controller.limits.lost_restraints import OF_SETTINGS
from include.control.cleanup import STAYS_S
from include.control.lifted_blocks import LiftedBlock, LiftedBlockStore
from include.control.small_objects import StoreUnreadableError
from models.control.bad_steps import name_lift
from models.control.state import JobHistory
from models.control.undo import name_hold


def delete_forgotten_lifts(lake: str, cluster: str, read_history: Callable[[str], JobHistory], now_s: float) -> None:
    """Delete the lifts of a cluster's jobs that lift nothing any more; without a store they stay."""

    def is_forgotten(one: LiftedBlock) -> bool:
        if one.cluster != cluster or one.job == OF_SETTINGS or one.at_s >= now_s - STAYS_S:
            return False
        return one.block_id not in _list_liftable(read_history(f"{one.cluster}/{one.job}"))

    with suppress(StoreUnreadableError):
        LiftedBlockStore(lake).delete_where(is_forgotten)


def _list_liftable(history: JobHistory) -> set[str]:
    blocks = {one.block_id for one in history.blocked}
    return {*blocks, *map(name_lift, history.bad_steps_s), name_hold(history)}
