"""tidewise lift: a parallelism under which a job failed is tried again when a person says so."""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace

import pytest
from control_entries import FOUR, entry_for, plain_case

from cli import lift
from controller.leases.lease import Lease
from controller.limits.limits_of_job import open_limits
from controller.log.delta_log import DeltaControlLog, open_control_log
from include.control.lifted_blocks import FOLDER, LiftedBlockStore
from include.settings import SETTINGS_FILE_VARIABLE, load_settings
from models.control.reconcile import reconcile
from models.control.state import BlockedTarget, JobHistory

BECAUSE = "the job failed: java.lang.IllegalStateException: no reader"


@pytest.fixture
def lake(tmp_path, monkeypatch):
    path = tmp_path / "settings.toml"
    path.write_text(
        f'[paths]\nlake = "{tmp_path}/lake"\n[clusters.live]\nrest_url = "http://j:8081"\nlimits.mode = "auto"\n'
    )
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(path))
    os.utime(path, (time.time() - 100, time.time() - 100))  # what was written a moment ago does not count yet
    (tmp_path / "lake").mkdir()
    now_s = time.time()
    case = plain_case(now_s)
    blocks = (BlockedTarget(FOUR, math.inf, "step-1-5", BECAUSE), BlockedTarget({"a": 9}, now_s + 60))
    case = replace(case, history=replace(case.history, blocked=blocks))
    entry = entry_for(case)
    lease = Lease(f"{tmp_path}/lake", "live", "test", time.time)
    assert lease.take()
    DeltaControlLog(open_control_log(f"{tmp_path}/lake"), "live", lease, time.time).append(entry)
    return f"{tmp_path}/lake"


def test_what_is_blocked_is_listed_lifted_once_and_then_let_pass(lake, capsys) -> None:
    assert lift.main(["--list"]) == 0
    reported = capsys.readouterr().out
    assert "live/orders: a 4, b 4, until a person lifts it" in reported
    assert BECAUSE in reported
    assert reported.count("live/orders") == 2  # the other ends by itself
    blocked = JobHistory("j", known_requested={"a": 2, "b": 2}, blocked=(BlockedTarget(FOUR, math.inf, "step-1-5"),))

    def decide():
        limits = open_limits(load_settings(), time.time).read_limits("live", "orders", {"a": "a", "b": "b"})
        case = plain_case(time.time(), history=blocked, limits=limits)
        return reconcile(replace(case, observed=replace(case.observed, cluster_rescales=0))).reason

    assert decide() == "blocked_target"
    assert lift.main(["live/orders", "--by", "ada"]) == 0
    assert [(one.block_id, one.by) for one in LiftedBlockStore(lake).read()] == [("step-1-5", "ada")]
    assert decide() == "plan"
    assert lift.main(["live/orders"]) == 2
    assert "nothing of 'live/orders' waits for a person" in capsys.readouterr().err


def test_what_is_not_blocked_is_a_slip(lake, capsys) -> None:
    assert lift.main(["live/Orders"]) == 2
    assert "live/orders" in capsys.readouterr().err
    assert LiftedBlockStore(lake).read() == []


def test_a_file_that_cannot_be_read_lifts_nothing(lake) -> None:
    store = LiftedBlockStore(lake)
    folder = f"{lake}/{FOLDER}"
    lift.main(["live/orders"])
    (path,) = __import__("pathlib").Path(folder).iterdir()
    for content in ("", "{", "[]", '{"cluster": "live"}', '{"cluster": 1, "job": "orders", "block_id": "step-1-5"}'):
        path.write_text(content)
        assert store.read() == []
