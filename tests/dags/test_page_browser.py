"""A night with the page in a real browser: within Airflow, on a fleet of 1,000 jobs, with a real controller behind."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow_page import airflow_app, forget_app, log_in, opened
from browser_session import BrowserSession
from controlled_cluster import ControlledCluster, controlled_cluster
from fastapi.testclient import TestClient

from benchmarks.pipeline.made_fleet import Size, hour_before, write_fleet
from include.lake_table import LakeTable
from include.tables import OBSERVATIONS
from page import PREFIX

pytestmark = [pytest.mark.airflow, pytest.mark.e2e, pytest.mark.long]
BEFORE = {"1" * 32: 1, "2" * 32: 2}
FLEET = Size(jobs=999, operators=2, hours=1, log_rows=0, forecast_hours=0, has_late_job=False)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlledCluster]:
    """A late job among 1,000, whose step waits for a yes."""
    with controlled_cluster(tmp_path, monkeypatch, mode="approve") as world:
        lake, end = str(tmp_path / "lake"), hour_before(time.time())
        write_fleet(lake, FLEET, end)
        start = end - timedelta(minutes=5)
        window = {"cluster": "live", "job": "orders", "operator": "Source: orders", "window_start": start}
        window |= {"window_s": 300, "is_source": True, "parallelism": 1, "target_data_rate_per_s": 3_000.0}
        window |= {"true_processing_rate_per_s": 2_000.0, "busy_share": 1.0, "pending_records": 1.6e6}
        LakeTable(lake, OBSERVATIONS).append([window | {"age_s": 543.0, "date": start.date(), "hour": start.hour}])
        assert world.want(4, "a backlog of 543 s") == "wait needs_approval"
        forget_app()
        yield world


@pytest.fixture
def tab(world: ControlledCluster, tmp_path: Path) -> Iterator[BrowserSession]:
    """A browser in which olga is logged in, at the fleet's page."""
    app = airflow_app()
    token = log_in(TestClient(app), "olga")
    with opened(app, tmp_path) as (address, tab):
        tab.send("Network.setCookie", name="_token", value=token, url=address, httpOnly=True)
        tab.open(f"{address}{PREFIX}/")
        yield tab


def keep_picture(tab: BrowserSession, name: str) -> None:
    """Write what is shown where TIDEWISE_PICTURES names a folder, to be looked at."""
    folder = os.environ.get("TIDEWISE_PICTURES")
    if folder:
        tab.keep_picture(Path(folder) / name)


def test_a_night_with_the_page(world: ControlledCluster, tab: BrowserSession) -> None:
    # the late job comes first of 1,000, and is found by name with the keyboard alone
    assert "1000 of 1000 jobs" in tab.text()
    first = tab.text("table.rows tbody tr")
    assert "orders live" in first
    assert "late 9 min" in first
    keep_picture(tab, "fleet_1400.png")
    tab.press("/", "Slash", "/")
    tab.fill("#q", "ORDERS")
    tab.follow("document.querySelector('#q').form.requestSubmit()")
    assert "1 of 1000 jobs" in tab.text()
    tab.click("table.rows a")

    # it waits for an answer, with the reason
    assert "This step waits for your answer" in tab.text()
    assert "a backlog of 543 s" in tab.text("#ask")
    tab.fill("#ask input[name=reason]", "go")
    tab.click("#ask button[value=yes]")
    assert "Approved" in tab.text("[role=status]")
    assert world.want(4, "a backlog of 543 s") == "rescale plan"
    assert world.want(4) == "confirm runs_as_requested"

    # why was it rescaled?
    tab.fill("input[name=why]", f"{datetime.now(UTC):%H:%M}")
    tab.follow("document.querySelector('input[name=why]').form.requestSubmit()")
    why = tab.text(".explanation")
    assert "rescale by plan, 2 -> 4 slots (Source: orders 1->4, enrich 2->4)" in why
    assert "a backlog of 543 s" in why
    assert "Flink: accepted" in why
    assert "ran as requested after" in why
    keep_picture(tab, "job_1400.png")

    # hold it
    tab.fill("form[action^=hold] input[name=reason]", "bad deploy")
    tab.click("form[action^=hold] button")
    assert "is held by olga" in tab.text()
    assert world.want(6) == "refuse on_hold"
    tab.click("form[action^=release] button")
    assert "Released" in tab.text("[role=status]")

    # pin it, and take the pin off
    tab.fill("form[action^=pin] input[name=parallelism]", "3")
    tab.click("form[action^=pin] button")
    assert "pinned to 3 by olga" in tab.text()
    tab.click("form[action^=unpin] button")
    assert "The pin is off" in tab.text("[role=status]")

    # undo it
    assert "Back to Source: orders 4->1, enrich 4->2" in tab.text("form[action^=undo]")
    tab.click("form[action^=undo] button")
    assert world.want(None, evaluates=False) == "roll_back undo"
    assert world.job.requested == BEFORE
    check_on_a_phone(tab)


def check_on_a_phone(tab: BrowserSession) -> None:
    """Nothing is wider than the screen, nothing was refused by the policy, and the keyboard reaches all."""
    tab.resize(390, 844)
    why = f"job?name=live/orders&why={datetime.now(UTC):%H:%M}"
    for address in (f"{PREFIX}/{page}" for page in ("", why, "results", "data")):
        tab.follow(f"location.href = '{address}'")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        keep_picture(tab, f"{address.rpartition('/')[2].partition('?')[0] or 'fleet'}_390.png")
    tab.follow(f"location.href = '{PREFIX}/{why}'")
    tab.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.evaluate("document.querySelector('figure[tabindex]').focus()")
    tab.press("ArrowRight")
    assert "Z: " in tab.text("figure output")
    assert tab.complaints == []
