"""What the controller polls is what people see of a job before anything is ingested: page, why, status and metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from controlled_cluster import ControlledCluster, controlled_cluster
from fastapi.testclient import TestClient
from polled_windows import GRAPH, WINDOW_S, evaluate, form_windows, run_for_ten_minutes

from cli.status import describe_fleet
from controller.view.job_view import JobView
from controller.view.live_rows import list_live_rows
from fleet.fleet_reader import FleetReader
from fleet.health import Fault, judge_cluster
from include.domain.graph import JobGraph
from include.live_windows import FOLDER, HELD_WINDOWS, LiveJob, LiveWindows
from include.settings import Health, load_settings
from include.tables import CONTROL_LOG
from models.polling.seen_job import PolledJob
from page.app import build_app
from page.environment import open_source
from page.job_view import read_view
from page.visitors import Access, admit_everyone

SEEN = PolledJob(
    *("c", "orders", "1" * 32, "RUNNING", 5000),
    running={},
    restarting=False,
    vertex_ids={},
    finished=frozenset(),
    graph=GRAPH,
    stops=(),
    metrics={},
)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlledCluster]:
    """A cluster whose controller has evaluated once, ten minutes after its start; nothing was ever ingested."""
    with controlled_cluster(tmp_path, monkeypatch) as world:
        run_for_ten_minutes(world)
        yield world


def page() -> TestClient:
    return TestClient(build_app(open_source({}, time.time), Access(admit_everyone)))


def test_a_job_is_drawn_over_one_hour_with_figures_of_now(world: ControlledCluster) -> None:
    text = page().get("/job?name=live/orders").text
    assert text.count("<svg viewBox") >= 4
    assert "nothing is known of this time" not in text
    assert 'aria-current="true">1 h<' in text
    assert "1,234 records wait" in text
    assert "50/s" in text
    assert "50/s" in page().get("/").text


def test_metrics_have_the_last_window_of_each_job(world: ControlledCluster) -> None:
    text = page().get("/metrics").text
    labels = '{cluster="live",job="orders"}'
    assert f"tidewise_job_load_records_per_second{labels} 50.0" in text
    assert f"tidewise_job_backlog_age_seconds{labels} 2.0" in text
    assert f"tidewise_job_running{labels} 1.0" in text


def test_why_has_what_was_measured_before_anything_is_ingested(world: ControlledCluster) -> None:
    text = page().get(f"/job?name=live/orders&why={time.strftime('%H:%M:%S', time.gmtime())}").text
    assert "nothing was ingested of that time" not in text
    assert "1,234, 2 s behind" in text


def test_a_job_that_stopped_is_named_at_once(world: ControlledCluster) -> None:
    world.job.state = "CREATED"
    evaluate(world, None, is_evaluation=False)
    facts = FleetReader(load_settings(), {}).read(time.time())
    assert "not running: orders (CREATED)" in " ".join(describe_fleet(facts))
    text = page().get("/").text
    assert "not running" in text
    assert "nothing needs you" not in text


def test_a_cluster_that_tells_nothing_any_more_is_named_and_what_to_do(world: ControlledCluster) -> None:
    facts = FleetReader(load_settings(), {}).read(time.time())
    assert [one.silent_s < 60 for one in facts.clusters if one.silent_s is not None] == [True]
    later = FleetReader(load_settings(), {}).read(time.time() + 170)  # nothing is written between two evaluations
    assert not [one for one in later.health if one.name == Fault.CLUSTER_SILENT and one.needs_person]
    silent = judge_cluster(replace(facts.clusters[0], silent_s=600.0), Health(), facts.at_s)
    assert [(one.detail, one.needs_person) for one in silent if one.name == Fault.CLUSTER_SILENT] == [
        ("Flink has told nothing of its jobs for 10 min", True)
    ]
    source = open_source({}, time.time)
    look = source.read()
    known = replace(look, facts=replace(look.facts, health=tuple(silent)))
    with source.reading() as reader:
        view = read_view(reader, known, "live", "orders", hours=None, why_at=None)
    assert view is not None
    assert [one.name for one in view.faults] == [Fault.CLUSTER_SILENT]
    assert "is it up, and do its jobs run?" in view.faults[0].remedy


def test_broken_settings_and_a_lost_table_have_a_page_that_says_what_to_do(world: ControlledCluster) -> None:
    log = world.root / "lake" / CONTROL_LOG.relative_path / "_delta_log"
    log.rename(log.with_name("elsewhere"))
    lost = page().get("/").text
    assert "ops.control_log" in lost
    assert "tidewise restore" in lost
    file = world.root / "settings.toml"
    file.write_text("[limits]\ncooldown_s = -1\n")
    broken = page().get("/")
    assert broken.status_code == 503
    assert "What to do" in broken.text
    assert f"Correct {file}" in broken.text


def test_what_was_polled_after_a_time_is_not_known_then(world: ControlledCluster) -> None:
    facts = FleetReader(load_settings(), {}).read(time.time() - 300)
    windows_ = [job.window for job in facts.jobs]
    assert all(one is None or one.until_s <= time.time() - 290 for one in windows_)


def test_files_are_bounded_replaced_and_outlive_the_process(tmp_path: Path) -> None:
    seen = {"orders": LiveJob("RUNNING", 5.0)}

    def add(start: int, count: int, load: float, job: str = "orders") -> None:
        view = JobView("c", job, seen=SEEN, observations=form_windows(WINDOW_S * start, count, load))
        LiveWindows(str(tmp_path)).add("c", list_live_rows("c", {job: view}), seen, 5.0)

    add(0, 100, 1.0)
    add(0, 3, 5.0, "other")
    redeployed = replace(SEEN, graph=JobGraph.from_operators(GRAPH.operators[:1]))
    views = {"redeployed": JobView("c", "redeployed", seen=redeployed, observations=form_windows(0, 3))}
    assert len(list_live_rows("c", views)) == 0
    add(90, 20, 2.0)
    live = LiveWindows(str(tmp_path)).read()["c"]
    sources = live.windows.filter(live.windows["is_source"]).to_pylist()
    mine = [row["target_data_rate_per_s"] for row in sources if row["job"] == "orders"]
    assert mine == [1.0] * 90 + [2.0] * 20
    assert len(sources) == 113
    assert live.jobs == seen
    add(110, HELD_WINDOWS, 3.0)
    live = LiveWindows(str(tmp_path)).read()["c"]
    assert len(live.windows) == 2 * HELD_WINDOWS
    (tmp_path / FOLDER / "torn.arrow").write_bytes(b"ARROW1")
    assert list(LiveWindows(str(tmp_path)).read()) == ["c"]
