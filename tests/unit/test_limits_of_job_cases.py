"""A job's limits by what persons have said of it, and of its namesakes and neighbours alone."""

from __future__ import annotations

from typing import Any

import pytest

from controller.limits.limits_of_job import LimitsReader, LimitsSnapshot
from include.control.holds import Hold
from include.control.lifted_blocks import LiftedBlock
from include.control.undo_orders import UndoOrder
from include.settings import Settings, check_settings
from models.control.limits import Limits
from models.control.state import Mode
from tests.unit.test_limits_of_job import IDS, LIVE, NOW_S, settings_of

ORDER = UndoOrder("live", "orders", "j", "s1", {"v1": 4}, {"v1": 2}, "ada", "late since", NOW_S, NOW_S + 60)


def read(settings: Settings, **known: Any) -> LimitsSnapshot:
    holds = known.pop("holds", [])
    given = {name: lambda result=result: result for name, result in known.items()}
    return LimitsReader(lambda: settings, lambda *_: holds, lambda _: (), lambda: NOW_S, **given).read()


def limits_of(settings: Settings, job: str = "orders", **known: Any) -> Limits:
    return read(settings, **known).limits_of("live", job, IDS)


@pytest.mark.parametrize(
    ("is_held", "holds", "counts"),
    [
        (False, [ORDER.hold], True),
        (True, [ORDER.hold], False),
        (False, [ORDER.hold, Hold("live", "bad deploy")], False),
    ],
)
def test_an_undo_is_sent_where_its_own_hold_is_all_that_holds_the_job(
    is_held: bool, holds: list[Hold], counts: bool
) -> None:
    result = limits_of(settings_of({"jobs": {"live/orders": {"is_held": is_held}}}), holds=holds, undos=[ORDER])
    assert result.is_held
    assert ('orders".is_held' in result.hold_reason) is is_held
    assert (result.undo is not None) is counts


@pytest.mark.covers("harm hold-and-rescale")
def test_an_undo_of_somebody_who_may_not_rescale_is_none() -> None:
    for named, counts in (([ORDER.by], True), (["boss"], False)):
        result = limits_of(settings_of({}, roles={"approve": named}), holds=[ORDER.hold], undos=[ORDER])
        assert (result.undo is not None, result.is_held) == (counts, True)


@pytest.mark.parametrize(
    ("job", "now_s", "wants"), [("orders", 0.0, True), ("orders", 60.0, False), ("rides", 0.0, False)]
)
def test_an_undo_is_wanted_of_its_own_job_until_its_end(job: str, now_s: float, wants: bool) -> None:
    snapshot = LimitsSnapshot(read(settings_of({})).state, (), (), NOW_S + now_s, undos=[ORDER])
    assert snapshot.wants_undo("live", job) is wants
    assert not snapshot.wants_undo("spare", "orders")


@pytest.mark.parametrize(
    ("jobs", "is_held"), [({}, True), ({"live/rides": {}}, False), ({"live/rides": {}, "live/orders": {}}, False)]
)
def test_a_hold_of_a_job_that_the_settings_name_holds_no_other(jobs: dict[str, Any], is_held: bool) -> None:
    """Before it was polled once nobody else knows it: without the settings its name may be a slip."""
    settings = settings_of({"jobs": jobs})
    assert limits_of(settings, "orders", holds=[Hold("live/rides")]).is_held is is_held
    assert limits_of(settings, "rides", holds=[Hold("live/rides")]).is_held


def test_blocks_are_lifted_for_the_job_that_a_person_has_named() -> None:
    lifted = [LiftedBlock(*of, block_id) for *of, block_id in (
        ("live", "orders", "one"), ("live", "rides", "two"), ("spare", "orders", "three"), ("live", "orders", "four"),
    )]  # fmt: skip
    settings = settings_of({})
    assert limits_of(settings, lifted=lifted).lifted_blocks == ("one", "four")
    assert limits_of(settings, "rides", lifted=lifted).lifted_blocks == ("two",)
    assert limits_of(settings, "others", lifted=lifted).lifted_blocks == ()


@pytest.mark.parametrize(("mode", "expected"), [("auto", Mode.DRY_RUN), ("approve", Mode.DRY_RUN), ("off", Mode.OFF)])
def test_a_cluster_known_from_raw_files_alone_is_at_most_in_dry_run(mode: str, expected: Mode) -> None:
    snapshot = read(check_settings({"limits": {"mode": mode}, "clusters": {"live": LIVE}}))
    assert snapshot.limits_of("of raw files", "orders", IDS).mode is expected
