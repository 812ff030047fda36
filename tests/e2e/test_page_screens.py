"""The page in a real browser on a desk and on a phone: figures of now, four drawn charts, labels beside the lines."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from airflow_page import opened
from browser_session import BrowserSession
from controlled_cluster import ControlledCluster, controlled_cluster
from polled_windows import evaluate, run_for_ten_minutes

from benchmarks.pipeline.made_fleet import CLUSTER, VERTEX, Size, hour_before, job_name, write_fleet
from fleet.frontier import FILE, FrontierPoint, PolicyCurve
from page.app import build_app
from page.environment import open_source
from page.visitors import Access, admit_everyone

pytestmark = pytest.mark.e2e
SCREENS = {"1400": (1400, 1000), "390": (390, 844)}
NOT_HERE = "[health]\nplan_old_h = 0\nmetrics_old_h = 0\nmodels_old_h = 0\n"
OVERLAPS = """[...document.querySelectorAll('.plot')].some(plot => [...plot.querySelectorAll('.top')].some(
  label => label.getBoundingClientRect().right > plot.querySelector('svg').getBoundingClientRect().left))"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlledCluster]:
    """A job that runs, in a set-up without plans, ingestion and trainings, as `make demo` is one."""
    with controlled_cluster(tmp_path, monkeypatch) as world:
        run_for_ten_minutes(world)
        file = tmp_path / "settings.toml"
        file.write_text(file.read_text() + NOT_HERE)
        yield world


@pytest.fixture
def tab(world: ControlledCluster, tmp_path: Path) -> Iterator[BrowserSession]:
    app = build_app(open_source(os.environ, time.time), Access(admit_everyone))
    with opened(app, tmp_path) as (address, tab):
        tab.open(f"{address}/")
        yield tab


def look(tab: BrowserSession, address: str, screen: str) -> str:
    """Open a page on a screen, whose picture is kept where TIDEWISE_PICTURES names a folder; returns its text."""
    tab.resize(*SCREENS[screen])
    tab.follow(f"location.href = '{address}'")
    assert tab.evaluate("document.documentElement.scrollWidth") <= SCREENS[screen][0]
    assert not tab.evaluate(OVERLAPS)
    folder = os.environ.get("TIDEWISE_PICTURES")
    if folder:
        name = address.strip("/").partition("?")[0] or (
            "fleet_red" if tab.text(".pill") != "nothing needs you" else "fleet"
        )
        tab.keep_picture(Path(folder) / f"{name}_{screen}.png")
    return tab.text("body")


def test_figures_are_of_now_on_every_screen(world: ControlledCluster, tab: BrowserSession) -> None:
    for screen in SCREENS:
        fleet = look(tab, "/", screen)
        assert "nothing needs you" in fleet
        assert "not known of this time" not in fleet
        assert "not part of this set-up" in fleet
        assert "ticked" in fleet
        assert "on time" in fleet
        assert "50.0/s" in fleet or "50/s" in fleet
        job = look(tab, "/job?name=live/orders", screen)
        assert "1,234 records wait" in job
        assert "2 s age of the backlog" in job
        assert tab.evaluate("document.querySelectorAll('figure.chart svg').length") == 4
        assert tab.evaluate("[...document.querySelectorAll('figure.chart .line')].every(one => one.getAttribute('d'))")
        assert tab.evaluate("document.querySelectorAll('figure.chart svg .mark').length") == 4
        assert tab.text(".spans [aria-current]") == "1 h"
        for address in ("/results", "/data"):
            look(tab, address, screen)
    assert tab.complaints == []


def test_a_late_job_and_one_that_stopped_are_under_no_green_word(world: ControlledCluster, tab: BrowserSession) -> None:
    world.job.state = "CREATED"
    evaluate(world, None)
    time.sleep(2.1)  # a look at the fleet counts for two seconds
    for screen in SCREENS:
        fleet = look(tab, "/", screen)
        assert "nothing needs you" not in fleet
        assert "1 job at risk" in fleet
        assert "not running" in tab.text("table.rows")


def test_what_would_be_sent_is_copied_and_goals_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fleet(str(tmp_path / "lake"), Size(2, 2, 2, 20, 1), hour_before(time.time()))
    settings = tmp_path / "settings.toml"
    settings.write_text("".join(["[paths]\n", *(f'{key} = "{tmp_path / key}"\n' for key in ("lake", "raw", "out"))]))
    monkeypatch.setenv("TIDEWISE_SETTINGS", str(settings))
    name, goals = (
        f"{CLUSTER}/{job_name(0)}",
        [FrontierPoint(one, 100.0 + at, 9.0 - at, 4.0) for at, one in enumerate("abc")],
    )
    made = {"as_of": "now", "days": 7, "jobs": {name: [asdict(PolicyCurve("programme", "Tidewise", tuple(goals)))]}}
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / FILE).write_text(json.dumps(made))
    app = build_app(open_source(os.environ, time.time), Access(admit_everyone))
    with opened(app, tmp_path) as (address, tab):
        tab.open(f"{address}/")
        for screen in SCREENS:
            text = look(tab, f"/job?name={name}", screen)
            assert "safer:" in text
            assert "cheaper:" in text
            assert tab.evaluate("document.querySelectorAll('svg .dots.c0').length") == 1
            tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            tab.evaluate("document.querySelector('button.copy').click()")
            assert tab.evaluate("document.documentElement.scrollWidth") <= SCREENS[screen][0]
            assert json.loads(tab.evaluate("getSelection().toString()")).keys() == {VERTEX}
        assert tab.complaints == []
