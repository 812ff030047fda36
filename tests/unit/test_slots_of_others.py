"""Slots that a job holds or comes back to are its own, whoever looks: by what the cluster was asked for."""

from __future__ import annotations

from dataclasses import replace

import flink_server
import pytest
from cluster_of_jobs import AUTO, Cluster, cluster_of
from controlled_flink import ENRICH, SOURCE

from models.control.case import OutcomeCheck
from models.control.limits import Limits

pytestmark = pytest.mark.covers("harm slots-twice")

BUDGET = replace(AUTO, cluster_slots_max=8.0)


@pytest.mark.parametrize(("total", "limits"), [(8, AUTO), (20, BUDGET)])
def test_slots_of_a_job_that_restarts_and_wants_more_are_not_free_for_itself(total: int, limits: Limits) -> None:
    with cluster_of(total, limits, a=4, b=3) as cluster:
        cluster.job("a").state = "RESTARTING"  # its four slots look free
        cluster.tick(a=8, b=None)
        assert cluster.sent == [5]
        assert cluster.server.asked_slots == 8


@pytest.mark.parametrize(("total", "limits"), [(8, AUTO), (20, BUDGET)])
@pytest.mark.parametrize("state", ["RESTARTING", "CREATED"])
def test_slots_of_a_job_that_restarts_and_is_not_looked_at_are_its_own(total: int, limits: Limits, state: str) -> None:
    with cluster_of(total, limits, a=2, c=4) as cluster:
        cluster.job("c").state = state
        cluster.tick(a=8)  # between evaluations only jobs of which something is wanted are asked about
        assert cluster.sent == [4]
        assert cluster.server.asked_slots == 8


def test_while_a_job_that_restarts_does_not_tell_what_it_needs_nobody_gets_more() -> None:
    with cluster_of(8, a=2, c=4) as cluster:
        cluster.job("c").state = "RESTARTING"
        cluster.server.troubles[f"{cluster.job('c').job_id}/resource-requirements"] = flink_server.reply_500
        assert cluster.tick(a=8) == {"a": "free_slots_unknown"}
        cluster.server.jobs.remove(cluster.job("c"))
        cluster.tick(a=8)
        assert cluster.sent == [8]


def fall_and_be_worse(cluster: Cluster, others: int) -> None:
    """Let ``a`` fall, ``b`` take slots that it gave up, and the fall prove to be one for the worse."""
    cluster.tick(a=2)
    cluster.tick(a=None)
    cluster.tick(b=others)
    cluster.tick(a=None, b=None)
    cluster.outcomes["a"] = OutcomeCheck(is_worse=True, detail="late")


@pytest.mark.parametrize(("total", "limits"), [(8, AUTO), (20, BUDGET)])
def test_a_job_goes_back_to_as_much_as_others_have_left(total: int, limits: Limits) -> None:
    with cluster_of(total, limits, a=5, b=3) as cluster:
        fall_and_be_worse(cluster, others=5)
        assert cluster.tick(a=None) == {"a": "worse_than_before"}
        assert cluster.sent == [2, 5, 3]
        assert cluster.server.asked_slots == 8


@pytest.mark.parametrize(("total", "limits"), [(8, AUTO), (20, BUDGET)])
def test_a_job_whose_slots_others_have_taken_does_not_go_back(total: int, limits: Limits) -> None:
    with cluster_of(total, limits, a=5, b=3) as cluster:
        fall_and_be_worse(cluster, others=6)
        assert cluster.tick(a=None) == {"a": "no_free_slots"}
        assert cluster.server.asked_slots == 8
        cluster.job("b").put({SOURCE: 1, ENRICH: 1}, 0.0)
        cluster.tick(a=None)
        assert cluster.sent == [2, 6, 5]  # as soon as there are slots again


@pytest.mark.parametrize(("total", "free"), [(0, 5), (8, -3), (8, 12), (-1, -1)])
def test_slots_that_contradict_each_other_are_unknown(total: int, free: int) -> None:
    with cluster_of(8, replace(AUTO, cluster_slots_max=4.0), a=2) as cluster:
        reported = {"slots-total": total, "slots-available": free, "flink-version": "2.1.3"}
        cluster.server.troubles["/overview"] = lambda request: request.write_json(
            reported if request.path == "/overview" else cluster.server._reply(request)[1]
        )
        assert cluster.tick(a=8) == {"a": "free_slots_unknown"}
        assert cluster.sent == []
