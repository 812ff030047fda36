"""Ticks on the raw files of a simulated fleet: what a controller decides, writes down, and finds again after a kill."""

from __future__ import annotations

import logging
import multiprocessing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from controller_process import read_log
from deltalake import DeltaTable

from benchmarks.pipeline.packed_models import pack_models
from controller.command import warm_up
from controller.evaluation.evaluate_job import answer_alarm, evaluate_job
from controller.evaluation.evaluators import Evaluators
from controller.leases.lease import Lease
from controller.tick import Ticker, TickSummary
from controller.view.champion import ChampionReader
from controller.view.job_view import EvaluationState
from controller.wiring import build_ticker
from include.flink.raw_format import RawRecord
from include.lake_table import LakeTable
from include.live_windows import LiveWindows
from include.settings import Mlflow, Paths, Settings, SettingsError
from include.tables import CONTROLLER_MEMORY, PLANS
from lab.commands.history import HistoryRequest, write_history
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel
from models.recovery.recovery_model import UNTRAINED
from models.training.model_review import VERSION_TAG

END = datetime(2026, 11, 20, 19, tzinfo=UTC)
NOW_S = END.timestamp() + 60
CLUSTER = "simulated"


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour of three jobs, polled every minute."""
    folder = tmp_path_factory.mktemp("fleet") / "raw"
    write_history(HistoryRequest(1, END, folder, CLUSTER, scale_jobs=3, operators=4, window_s=60), workers=1)
    return folder


@pytest.fixture
def settings(tmp_path: Path, raw: Path) -> Settings:
    paths = Paths(raw=str(raw), lake=str(tmp_path / "lake"), out=str(tmp_path / "out"))
    return Settings(paths=paths, mlflow=Mlflow(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}"))


def start(settings: Settings, now_s: float = NOW_S, owner: str = "first") -> Ticker:
    """Return a controller that has taken up what was polled; nothing it does leaves it."""
    ticker = build_ticker(lambda: settings, [CLUSTER], owner, lambda: now_s, is_rehearsal=True)
    assert warm_up(ticker, settings, [CLUSTER], now_s) > 0
    return ticker


def tick(ticker: Ticker) -> TickSummary:
    summary = ticker.tick()
    ticker.release()
    return summary


def jobs_of(settings: Settings) -> dict[str, dict[str, int]]:
    ticker = start(settings, owner="a look")
    tick(ticker)
    return {name: dict(view.seen.running) for (_, name), view in ticker.view.jobs.items() if view.seen is not None}


def write_plan(settings: Settings, job: str, before: dict[str, int], after: dict[str, int]) -> None:
    """Write the plan of a job, made ten minutes ago, with one step that is due now; its policy only plans ahead."""
    made = END - timedelta(minutes=10)
    row = {
        "as_of": made,
        "step_id": f"step-{job}",
        "cluster": CLUSTER,
        "job": job,
        "step_index": 0,
        "status": "planned",
        "apply_at": END,
        "effective_at": END + timedelta(minutes=1),
        "valid_until": END + timedelta(hours=1),
        "parallelism_from": before,
        "parallelism_to": after,
        "slots_from": max(before.values()),
        "slots": max(after.values()),
        "reason": "as forecast",
        "policy": "need_vector",
        "observations_until": made,
        "date": made.date(),
    }
    LakeTable(settings.paths.lake, PLANS).append([row])


def test_a_due_step_is_decided_on_once_and_written_down(settings: Settings) -> None:
    (job, running), *_ = sorted(jobs_of(settings).items())
    settings = settings.model_copy(update={"planner": settings.planner.with_values({"policy": "need_vector"})})
    larger = {name: count + 1 for name, count in running.items()}
    write_plan(settings, job, running, larger)
    lake = Path(settings.paths.lake)
    before = len(read_log(lake))
    summary = tick(start(settings))
    assert summary.decisions["rescale plan (dry run)"] == 1
    (row,) = read_log(lake, job=job, verb="rescale")
    assert (row["is_dry_run"], row["reason"], row["step_id"]) == (True, "plan", f"step-{job}")
    assert (dict(row["parallelism_from"]), dict(row["parallelism_to"])) == (running, larger)
    rows = len(read_log(lake))
    assert rows > before
    again = tick(start(settings, owner="second"))  # a controller that starts again decides the same
    assert again.decisions["rescale plan (dry run)"] == 1
    assert len(read_log(lake)) == rows


@pytest.mark.covers("apply_review 24")
def test_jobs_are_known_from_their_first_poll(settings: Settings) -> None:
    """No table was ever written: every job is evaluated, and the models that are missing stop nothing."""
    summary = tick(start(settings))
    assert (summary.jobs, summary.seen, summary.is_evaluation) == (3, 3, True)
    assert not summary.problems
    assert sum(summary.decisions.values()) == 3
    assert {row["reason"] for row in read_log(Path(settings.paths.lake))} >= {"new_job_id"}
    assert LiveWindows(settings.paths.lake).read() == {}  # a rehearsal leaves them to the controller


def test_between_two_evaluations_the_last_minutes_are_looked_at(settings: Settings) -> None:
    ticker = start(settings)
    first = ticker.tick()
    assert (first.is_evaluation, first.alarms) == (True, 0)
    assert all(one.looks is None for one in ticker.view.jobs.values())
    second = tick(ticker)
    assert not second.is_evaluation
    assert all(one.looks is not None for one in ticker.view.jobs.values())


@pytest.mark.covers("apply_review 9")
def test_a_cluster_whose_lease_is_taken_is_left_alone(settings: Settings) -> None:
    other = Lease(settings.paths.lake, CLUSTER, "somebody", lambda: datetime.now(UTC).timestamp())
    assert other.take()
    summary = start(settings).tick()
    assert summary.problems == {CLUSTER: "somebody has its lease"}
    assert summary.decisions == {}
    assert read_log(Path(settings.paths.lake)) == []
    other.release()
    assert tick(start(settings)).problems == {}


def test_what_is_kept_is_taken_up_again(settings: Settings) -> None:
    (job, running), *_ = sorted(jobs_of(settings).items())
    settings = settings.model_copy(update={"planner": settings.planner.with_values({"policy": "need_vector"})})
    write_plan(settings, job, running, {name: count + 1 for name, count in running.items()})
    tick(start(settings, NOW_S + 300))
    rows = DeltaTable(f"{settings.paths.lake}/{CONTROLLER_MEMORY.relative_path}").to_pyarrow_table().to_pylist()
    assert any(row["job"] == job and row["standing"] for row in rows)
    tick(start(settings, NOW_S + 600, owner="second"))
    after = DeltaTable(f"{settings.paths.lake}/{CONTROLLER_MEMORY.relative_path}").to_pyarrow_table().num_rows
    assert after == len(rows)  # nothing has changed, so nothing is written


@pytest.mark.covers("apply_review 16")
def test_replies_that_cannot_be_used_are_counted_and_harm_nothing(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    ticker = start(settings)
    job = next(iter(jobs_of(settings)))
    at_ms = round(1000 * NOW_S)
    bodies = ['{"jobs":null}', "<html>", "", "[]", '{"name": "' + "x" * 5000 + '"}']
    ticker.add_records(RawRecord(at_ms, CLUSTER, "job", "/jobs/x", "f" * 32, None, 200, body) for body in bodies)
    with caplog.at_level(logging.INFO):
        summary = tick(ticker)
    assert summary.faults == len(bodies)
    assert summary.seen == 3
    assert job in {name for _, name in ticker.view.jobs}
    assert caplog.text.count("a reply was not used") == len(bodies)


def test_settings_that_break_meanwhile_stop_no_tick(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    broken = [False]

    def load() -> Settings:
        if broken[0]:
            raise SettingsError("settings refused: limits.mode = 'perhaps'")
        return settings

    ticker = build_ticker(load, [CLUSTER], "first", lambda: NOW_S, is_rehearsal=True)
    warm_up(ticker, settings, [CLUSTER], NOW_S)
    broken[0] = True
    summary = tick(ticker)
    assert (summary.jobs, summary.seen) == (3, 3)
    assert "nothing is sent: settings refused" in caplog.text


def plan_of(settings: Settings) -> tuple[Settings, str, dict[str, int]]:
    (job, running), *_ = sorted(jobs_of(settings).items())
    settings = settings.model_copy(update={"planner": settings.planner.with_values({"policy": "need_vector"})})
    write_plan(settings, job, running, {name: count + 1 for name, count in running.items()})
    return settings, job, running


@pytest.mark.covers("harm unreadable-file")
def test_a_plan_s_file_that_is_gone_stops_no_job(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """Plans that were read count on until they are old; a controller that starts is as one without plans."""
    settings, _, _ = plan_of(settings)
    ticker = start(settings)
    assert tick(ticker).decisions["rescale plan (dry run)"] == 1
    (file,) = Path(settings.paths.lake, PLANS.relative_path).rglob("*.parquet")
    file.unlink()
    write_plan(settings, "another", {"a": 1}, {"a": 2})
    assert tick(ticker).decisions["rescale plan (dry run)"] == 1
    summary = tick(start(settings, owner="second"))
    assert (summary.jobs, summary.seen, sum(summary.decisions.values())) == (3, 3, 3)
    assert not summary.problems
    assert "gold.plans cannot be read" in caplog.text


@pytest.mark.covers("harm unreadable-file")
def test_a_plan_that_cannot_be_used_harms_its_own_job_alone(settings: Settings, monkeypatch) -> None:
    from controller.view import plan_tables

    settings, job, _ = plan_of(settings)
    others = [name for name in jobs_of(settings) if name != job]
    write_plan(settings, others[0], {"a": 1}, {"a": 2})
    make = plan_tables._plan_of

    def fail(rows):
        if rows[0]["job"] == others[0]:
            raise KeyError("apply_at")
        return make(rows)

    monkeypatch.setattr(plan_tables, "_plan_of", fail)
    summary = tick(start(settings))
    assert summary.decisions["rescale plan (dry run)"] == 1
    assert summary.jobs == 3


@pytest.mark.parametrize(
    "broken",
    ["evaluate_job", "form_intention", "append_outcomes", "forecasts", "memories", "champion", "follow_plan"],
)
@pytest.mark.covers("harm unreadable-file")
def test_what_fails_in_a_tick_is_a_line_in_the_log(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    settings, _, _ = plan_of(settings)
    ticker = start(settings)
    failed: list[object] = []

    def fail(*arguments: object, **_: object) -> None:
        failed.append(arguments)
        raise ZeroDivisionError(broken)

    if broken in {"evaluate_job", "form_intention", "append_outcomes"}:
        monkeypatch.setattr(f"controller.tick.{broken}", fail)
    elif broken == "follow_plan":
        monkeypatch.setattr("controller.view.fleet_view.follow_plan", fail)
    elif broken == "champion":
        monkeypatch.setattr(ticker._readers.champion, "refresh", fail)
    elif broken == "forecasts":
        monkeypatch.setattr(ticker._readers.plans, "read_forecasts", fail)
    else:
        monkeypatch.setattr(ticker._readers.memories, "read", fail)
        monkeypatch.setattr(ticker._readers.memories, "append", fail)
    summary = tick(ticker)
    assert (summary.jobs, sum(summary.decisions.values()), dict(summary.problems)) == (3, 3, {})
    assert failed or broken == "append_outcomes"
    assert broken in caplog.text or broken == "append_outcomes"
    if broken in {"forecasts", "champion", "memories"}:
        assert summary.decisions["rescale plan (dry run)"] == 1


@pytest.mark.covers("harm unreadable-file")
def test_a_champion_whose_file_is_none_leaves_the_models_as_they_are(settings: Settings, monkeypatch, caplog) -> None:
    from controller.view.champion import ChampionReader

    reader = ChampionReader(Mlflow(tracking_uri="http://nowhere:1"))
    named = SimpleNamespace(version="3", tags={VERSION_TAG: "v3"})
    monkeypatch.setattr("include.model_registry.find_alias", lambda *_: named)
    monkeypatch.setattr("include.model_registry.list_versions", lambda *_: [named])
    for content in (b"", b"{}", b"PK\x03\x04", b'{"index": 3}'):
        monkeypatch.setattr("include.model_registry.read_bundle", lambda *_, content=content: content)
        reader.refresh()
        assert (reader.bundle, reader.model_version) == (None, None)
    assert "the champion was not read" in caplog.text


def test_the_first_evaluation_knows_the_models(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them a controller that starts would size jobs by an hour of windows alone."""
    (job, running), *_ = sorted(jobs_of(settings).items())
    grid = np.arange(1.0, 9.0)
    curve = CapacityCurve(grid.astype(int), 500.0 * grid, grid, grid[:1].astype(int), 500.0 * grid[:1], 500.0)
    models = JobModels(
        dict.fromkeys(running, curve), dict.fromkeys(running, 1.0), UNTRAINED, LatencyModel(grid[:0], grid[:0])
    )
    bundle = pack_models("v1", {(CLUSTER, job): models})
    monkeypatch.setattr(ChampionReader, "refresh", lambda self: setattr(self, "bundle", bundle))
    ticker = start(settings)
    assert tick(ticker).is_evaluation
    assert ticker.view.jobs[CLUSTER, job].models is not None


def test_jobs_dealt_out_among_processes_are_decided_as_by_one(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    ticker = start(settings)
    tick(ticker)
    jobs = [(view, EvaluationState()) for view in ticker.view.jobs.values()]
    alone, shared = Evaluators(1), Evaluators(2)
    decided = alone.decide(evaluate_job, jobs, settings, round(NOW_S))
    assert len({one.remembered for one in decided if one is not None}) == 3
    assert shared.decide(evaluate_job, jobs, settings, round(NOW_S)) == decided
    assert shared.decide(answer_alarm, jobs, settings, round(NOW_S)) == [None, None, None]  # as they were
    for process in multiprocessing.active_children():
        process.kill()
        process.join()
    assert shared.decide(evaluate_job, jobs, settings, round(NOW_S)) == decided
    assert "a process that evaluates jobs has ended" in caplog.text
    assert shared.decide(evaluate_job, jobs[:1], settings, round(NOW_S)) == decided[:1]
    shared.close()
