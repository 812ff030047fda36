"""A cluster's control over REST: settings that change under it, long turns, requests of jobs that nobody has polled."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from flink_server import FakeJob, FlinkServer, serving

from controller.actuators.choose_actuator import choose_terms, open_cluster_actuator
from controller.cluster_control import ClusterControl
from controller.command import find_restart
from controller.leases.lease import Lease
from controller.limits.limits_of_job import open_limits
from controller.log.delta_log import DeltaControlLog, open_control_log
from controller.tick import ClusterTurns
from controller.view.job_view import JobView
from controller.wired_settings import explain_change, explain_changes
from include.live_windows import LiveJob
from include.settings import SETTINGS_FILE_VARIABLE, Settings, check_settings, load_settings
from models.control.request_times import RequestTimes
from models.control.state import Intention, Origin
from models.polling.seen_job import PolledJob

FILE = """
[paths]
lake = "{lake}"
raw = "{raw}"
[limits]
cooldown_s = 0
[clusters.live]
rest_url = "{url}"
limits.mode = "auto"
"""


class World:
    """A cluster over REST, and controls of it that are made from its settings file."""

    def __init__(self, root: Path, server: FlinkServer, expiry_s: float = 60.0) -> None:
        self.root, self.server, self.expiry_s = root, server, expiry_s
        self.ahead_s = 0.0
        self.path = root / "settings.toml"
        self.write()
        os.utime(self.path, (time.time() - 1000, time.time() - 1000))
        (root / "lake").mkdir()
        self.made = self.make("one")

    def clock(self) -> float:
        return time.time() + self.ahead_s

    def write(self, **changes: str) -> None:
        values = {"lake": str(self.root / "lake"), "raw": str(self.root / "raw"), "url": self.server.url}
        self.path.write_text(FILE.format(**{**values, **changes}))

    def make(self, owner: str) -> ClusterControl:
        settings = load_settings()
        lake = settings.paths.lake
        lease = Lease(lake, "live", owner, time.time, expiry_s=self.expiry_s, margin_s=self.expiry_s / 10)
        return ClusterControl(
            name="live",
            actuator=open_cluster_actuator(settings, "live", lease.may_send),
            log=DeltaControlLog(open_control_log(lake), "live", lease, self.clock),
            lease=lease,
            limits=open_limits(settings, self.clock, load_settings),
            clock=self.clock,
            late_after_s=60.0,
            express=choose_terms(settings, "live"),
            made_with=settings,
        )

    def want(self, *jobs: FakeJob, count: int = 3) -> Counter[str]:
        wanted = {
            job.name: Intention(dict.fromkeys(job.requested, count), Origin.PLAN, "step", "load", time.time() + 600)
            for job in jobs
        }
        views = {job.name: JobView("live", job.name) for job in jobs}
        result, problem = self.made.control(views, wanted, None, is_evaluation=True)
        assert problem is None
        return result


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(tmp_path / "settings.toml"))
    with serving(FlinkServer(FakeJob())) as server:
        yield World(tmp_path, server)


def test_a_step_is_sent_and_confirmed(world) -> None:
    (job,) = world.server.jobs
    assert world.want(job) == Counter({"rescale plan": 1})
    assert world.want(job) == Counter({"confirm runs_as_requested": 1})
    assert len(world.server.asked("PUT")) == 1


def test_windows_are_shown_after_an_evaluation_and_when_a_job_has_another_state(world) -> None:
    """What else is kept beside decisions goes with them; where nothing is shown it goes with evaluations alone."""
    (job,), made, kept, shown = world.server.jobs, world.made, list[float](), list[str]()
    seen = PolledJob("live", job.name, job.job_id, "", 5, {}, False, {}, frozenset(), None, (), {})

    class Shown:
        def add(self, cluster: str, windows: object, jobs: Mapping[str, LiveJob], at_s: float) -> None:
            shown.append(f"{cluster} {jobs[job.name].state}")

    def take_turn(state: str, *, is_evaluation: bool = False) -> tuple[int, int]:
        view = JobView("live", job.name, seen=replace(seen, state=state))
        made.control({job.name: view}, {}, None, is_evaluation=is_evaluation)
        return len(kept), len(shown)

    made.delete_lifts = kept.append
    assert take_turn("RUNNING") == (0, 0)
    assert take_turn("RUNNING", is_evaluation=True) == (1, 0)
    made.live = Shown()
    assert [take_turn(state) for state in ("RUNNING", "RUNNING", "CREATED")] == [(2, 1), (2, 1), (3, 2)]
    assert take_turn("CREATED", is_evaluation=True) == (4, 3)
    assert shown == ["live RUNNING", "live CREATED", "live CREATED"]


def test_slots_are_waited_for_as_long_as_those_of_the_cluster_have_taken(world) -> None:
    (job,) = world.server.jobs
    world.want(job)
    log, name = world.made.log, f"live/{job.name}"
    last = log.read_last(name)
    assert last.case.limits.slots_wait_s == 600.0  # the setting, while nothing is known
    assert world.made.slots_wait_s is None
    times = (RequestTimes(slots_s=80.0),) * 16
    log.append(replace(last, history=replace(last.history, in_flight=None, times_of_requests=times)))
    world.want(job)
    assert log.read_last(name).case.limits.slots_wait_s < 300.0
    assert world.made.slots_wait_s == 80.0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda world: world.write(url="http://elsewhere:8081"), "clusters.live.rest_url changed"),
        (lambda world: world.write(lake=f"{world.root}/other"), "paths.lake changed"),
        (lambda world: world.write(raw=f"{world.root}/other"), "paths.raw changed"),
        (lambda world: world.write(url=f'{world.server.url}"\nactuator = "none'), "clusters.live.actuator changed"),
        (lambda world: world.path.write_text(world.path.read_text().replace("live", "prod")), "name no cluster 'live'"),
        (lambda world: world.path.write_text("[limits]\nmode = 'auto'\n"), "name no cluster 'live'"),
        (lambda world: world.path.unlink(), "does not exist"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_between", [False, True])
@pytest.mark.covers("harm settings-wired")
def test_a_control_whose_parts_are_of_other_settings_sends_nothing(world, monkeypatch, change, why, is_between) -> None:
    (job,) = world.server.jobs
    world.want()
    if is_between:  # after the decision was written down, before its request leaves
        append, changed = world.made.log.append_all, []

        def append_all(entries) -> None:
            append(entries)
            if any(entry.sends for entry in entries) and not changed:
                changed.append(change(world))

        monkeypatch.setattr(world.made.log, "append_all", append_all)
        assert world.want(job)["refuse withdrawn_before_sending"] == 1
    else:
        change(world)
        world.want(job)
    world.ahead_s += 2.1
    assert set(world.want(job)) == {"wait mode_off"}
    assert why in world.made.log.read_last("live/orders").action.detail
    assert world.server.asked("PUT") == []


def test_a_request_of_a_job_that_nobody_has_polled_is_followed_by_the_next_controller(world) -> None:
    (job,) = world.server.jobs
    assert world.want(job) == Counter({"rescale plan": 1})
    world.made.release()
    world.made = world.make("two")
    result, problem = world.made.control({}, {}, None, is_evaluation=False)
    assert (result, problem) == (Counter({"confirm runs_as_requested": 1}), None)


@pytest.mark.covers("harm leases-gone")
def test_leases_that_were_removed_begin_above_the_numbers_of_the_log(world) -> None:
    (job,) = world.server.jobs
    for count in (2, 3, 4):
        world.want(job, count=count)
    rows = open_control_log(str(world.root / "lake")).read(["lease_number"], date.min, date.max)
    highest = max(rows.column("lease_number").to_pylist())
    assert highest > 1
    world.made.release()
    shutil.rmtree(world.root / "lake" / "ops" / "leases")
    world.made = world.make("two")
    world.want(job, count=5)
    assert world.made.lease.number > highest
    assert world.made.log.read_last("live/orders").case.desired.parallelism == dict.fromkeys(job.requested, 5)
    world.made.release()
    world.made = world.make("three")
    assert world.want(job, count=5) == Counter({"rescale plan": 1})


@pytest.mark.covers("harm unreadable-file")
def test_a_job_whose_row_cannot_be_read_is_refused_by_name_and_stops_nobody(world) -> None:
    other = FakeJob(job_id="b" * 32, name="rides")
    world.server.jobs.append(other)
    (job, _) = world.server.jobs
    for _ in range(2):
        world.want(job, other, count=2)
    known = world.made.log._jobs()["live/rides"]
    known._entry, known._row = None, {"at": None}
    result = world.want(job, other, count=4)
    assert result == Counter({"rescale plan": 1, "refuse history_unknown": 1})
    assert set(other.requested.values()) == {2}
    assert set(job.requested.values()) == {4}


@pytest.mark.covers("harm slow-cluster")
def test_a_lease_is_kept_while_a_cluster_is_at_work_for_longer_than_a_term(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(tmp_path / "settings.toml"))
    slow = FlinkServer(FakeJob())
    at_work_s = 1.25 * 4.0

    def answer_slowly(request) -> None:
        if time.monotonic() - began < at_work_s:
            time.sleep(0.4)
        status, content = slow._reply(request)
        request.write_json(content, status)

    with serving(slow):
        world = World(tmp_path, slow, expiry_s=4.0)
        began = time.monotonic()
        slow.troubles["*"] = answer_slowly
        (job,) = slow.jobs
        assert world.want(job) == Counter({"rescale plan": 1})
        assert time.monotonic() - began > at_work_s > world.expiry_s
        other = Lease(str(tmp_path / "lake"), "live", "two", time.time, expiry_s=4.0, margin_s=0.2)
        assert not other.take()
        assert len(slow.asked("PUT")) == 1


def settings_of(**changes: object) -> Settings:
    values = {
        "paths": {"lake": "l", "raw": "r"},
        "clusters": {"a": {"rest_url": "http://a:1"}, "b": {"rest_url": "http://b:1"}},
    }
    for path, value in changes.items():
        at, (*sections, key) = values, path.split("__")
        for section in sections:
            at = at[section]
        at[key] = value
    return check_settings(values)


def test_what_begins_anew_is_the_cluster_whose_parts_have_changed() -> None:
    before = settings_of()
    assert explain_changes(before, settings_of(limits={"mode": "auto"})) == ""
    other = settings_of(clusters__a={"rest_url": "http://c:1"})
    assert "clusters.a.rest_url" in explain_change(before, other, "a")
    assert explain_change(before, other, "b") == ""
    gone = settings_of(clusters={"b": {"rest_url": "http://b:1"}})
    assert "name no cluster 'a' any more" in explain_changes(before, gone)
    new = settings_of(clusters__d={"rest_url": "http://d:1"})
    assert "clusters.d changed" in explain_changes(before, new)
    assert explain_changes(check_settings({}), check_settings({"paths": {"lake": "other"}})) != ""


def test_a_controller_begins_anew_only_with_clusters_that_it_may_control(tmp_path) -> None:
    before = settings_of()
    assert find_restart(before, settings_of(), None) == ("", [])
    why, clusters = find_restart(before, settings_of(clusters__a={"rest_url": "http://c:1"}), None)
    assert "clusters.a.rest_url changed" in why
    assert clusters == ["a", "b"]
    gone = settings_of(clusters={"b": {"rest_url": "http://b:1"}}, paths={"lake": "l", "raw": str(tmp_path)})
    assert find_restart(before, gone, ["a"]) == ("", [])  # what it was started for is gone: stopped, not replaced
    none = settings_of(clusters={}, paths={"lake": "l", "raw": str(tmp_path)})
    assert find_restart(before, none, None) == ("", [])


@pytest.mark.covers("harm slow-cluster")
def test_a_slow_cluster_holds_up_neither_the_tick_nor_its_own_turn() -> None:
    turns, gate, done = ClusterTurns(2), threading.Event(), []

    def slow():
        done.append("slow began")
        gate.wait(10)
        return Counter({"rescale plan": 1}), None

    for number in range(3):
        for cluster in turns.idle(["slow", "quick"]):
            turns.begin(cluster, slow if cluster == "slow" else lambda: (Counter({"as_desired": 1}), None))
        began = time.monotonic()
        decisions, problems = turns.take_ended(0.2)
        assert time.monotonic() - began < 2
        assert decisions == Counter({"as_desired": 1}), number
        assert "still at work" in problems["slow"]
    assert done == ["slow began"]  # one turn at a time
    gate.set()
    decisions, problems = turns.take_ended(None)
    assert (decisions, problems) == (Counter({"rescale plan": 1}), {})

    def fail():
        raise ZeroDivisionError("whatever")

    turns.begin("slow", fail)
    assert turns.take_ended(None) == (Counter(), {"slow": "ZeroDivisionError: whatever"})
    turns.close()
