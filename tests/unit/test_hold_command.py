"""tidewise hold, tidewise release and tidewise approve: one line that cannot miss."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from waiting_step import write_waiting

from cli import approve, hold, lift, log, status, why
from controller.leases.lease import Lease
from fleet.fleet_reader import FleetReader
from include.control.approvals import ApprovalStore
from include.control.holds import Hold, HoldStore
from include.control.pins import FOLDER as PIN_FOLDER
from include.settings import SETTINGS_FILE_VARIABLE, load_settings
from include.tables import JOB_GRAPHS

STRANGE = 'Foo$$Lambda$14/0x00$x "quoted" <script> \U0001f600 ' + "x" * 4000


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """A lake with two jobs of a cluster that the settings name."""
    path = tmp_path / "settings.toml"
    path.write_text(f'[paths]\nlake = "{tmp_path}/lake"\n[clusters.Prod]\nrest_url = "http://j:8081"\n')
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(path))
    monkeypatch.delenv("TIDEWISE_HOLD", raising=False)
    today = datetime.now(UTC).date()
    rows = {"cluster": ["Prod", "Prod"], "job": ["orders", STRANGE], "date": [today, today], "hour": [1, 1]}
    write_deltalake(f"{tmp_path}/lake/{JOB_GRAPHS.relative_path}", pa.table(rows), partition_by=["date", "hour"])
    lease = Lease(f"{tmp_path}/lake", "Prod", "a controller", time.time)
    assert lease.take()
    lease.release()
    return f"{tmp_path}/lake"


def held(lake: str) -> list[str]:
    return sorted(one.scope for one in HoldStore(lake).read(time.time()))


def test_everything_a_cluster_and_a_job_are_held_and_released(lake, capsys) -> None:
    assert hold.main(["hold", "--all"]) == 0
    assert hold.main(["hold", "Prod", "Prod/orders", "--hours", "2", "--reason", "bad", "deploy", "--by", "ada"]) == 0
    assert held(lake) == ["Prod", "Prod/orders", "all"]
    capsys.readouterr()
    assert hold.main(["hold", "--list"]) == 0
    assert capsys.readouterr().out.count("by ada: bad deploy") == 2
    assert hold.main(["release"]) == 0
    assert held(lake) == ["Prod", "Prod/orders"]
    assert hold.main(["release", "--all"]) == 0
    assert held(lake) == []


def test_a_job_of_any_name_can_be_held(lake) -> None:
    assert hold.main(["hold", f"Prod/{STRANGE}"]) == 0
    assert held(lake) == [f"Prod/{STRANGE}"]
    assert HoldStore(lake).read(time.time())[0].covers("Prod", STRANGE)
    assert hold.main(["release", f"Prod/{STRANGE}"]) == 0


@pytest.mark.parametrize(
    ("scope", "told"),
    [("prod", "write 'Prod'"), ("Prod/Orders", "write 'Prod/orders'"), ("prod/orders", "write 'Prod'"),
     ("Prod/zzz", "there is no job"), ("zzz", "there is no cluster")],
)  # fmt: skip
@pytest.mark.covers("apply_review 11")
def test_a_name_that_nobody_knows_is_refused_with_those_that_are_alike(lake, capsys, scope: str, told: str) -> None:
    assert hold.main(["hold", "Prod", scope]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "FAILED" in error
    assert held(lake) == []
    assert hold.main(["hold", scope, "--force"]) == 0
    assert held(lake) == [scope]


def test_what_is_not_on_hold_cannot_be_released(lake, capsys) -> None:
    hold.main(["hold", "Prod"])
    assert hold.main(["release", "prod"]) == 2
    assert "'prod' is not on hold; on hold: 'Prod'" in capsys.readouterr().err
    assert held(lake) == ["Prod"]


def test_a_store_that_cannot_be_written_says_that_it_failed(lake, capsys, monkeypatch) -> None:
    monkeypatch.setenv("TIDEWISE__PATHS__LAKE", "/proc/nowhere")
    assert hold.main(["hold", "--all"]) == 1
    assert "FAILED" in capsys.readouterr().err
    monkeypatch.setenv("TIDEWISE__LIMITS__MODE", "nonsense")
    assert hold.main(["hold", "--all"]) == 1
    assert "a controller with these settings sends nothing" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--hours", "2"], ["--all", "Prod"], ["--reason", "Prod"]])
@pytest.mark.covers("harm name-forgotten")
def test_a_forgotten_name_holds_nothing_and_asks_for_all(lake, capsys, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        hold.main(["hold", *arguments])
    assert ended.value.code == 2
    assert "--all for everything" in capsys.readouterr().err
    assert held(lake) == []


@pytest.mark.covers("harm lake-missing")
def test_a_lake_that_is_not_there_is_no_hold_that_a_release_could_end(lake, monkeypatch, tmp_path) -> None:
    folder = tmp_path / "lake" / PIN_FOLDER
    folder.mkdir(parents=True)
    (folder / "odd").write_text("no pin")
    (odd,) = FleetReader(load_settings(), {}).read(time.time()).holds
    assert odd.release == "remove odd"
    monkeypatch.setenv("TIDEWISE__PATHS__LAKE", str(tmp_path / "nolake"))
    holds = FleetReader(load_settings(), {}).read(time.time()).holds
    assert len(holds) == 2
    for one in holds:
        assert "tidewise release" not in one.release
        assert "let paths.lake name the lake" in one.release


@pytest.mark.parametrize("mark", ["\x1b", "\u202e", "\u200b", "\u2066", "\x9b", "\ue000", "\u2028"])
@pytest.mark.covers("harm name-in-terminal")
def test_no_command_prints_what_a_terminal_would_obey(lake, capsys, mark: str) -> None:
    name = f"Prod/a{mark}b\n2026-11-28 INFO all is released"
    HoldStore(lake).write(Hold(name, name, name, time.time()))
    write_waiting(lake, time.time(), job=f"or{mark}ders")
    for command in (
        lambda: hold.main(["hold", "--list"]),
        lambda: hold.main(["release", name]),
        lambda: approve.main(["--list"]),
        lambda: approve.main([name, f"step{mark}"]),
        lambda: lift.main([name]),
        lambda: status.main([]),
        lambda: log.main([]),
        lambda: why.main([name]),
    ):
        command()
        reported = capsys.readouterr()
        text = reported.out + reported.err
        assert text
        assert mark not in text
        assert "\n2026-11-28 INFO" not in text


@pytest.mark.covers("harm hold-elsewhere")
def test_a_lake_that_no_controller_uses_is_none_that_a_hold_stops_anything_on(
    lake, capsys, monkeypatch, tmp_path
) -> None:
    other = tmp_path / "other"
    monkeypatch.setenv("TIDEWISE__PATHS__LAKE", str(other))
    assert hold.main(["hold", "--all"]) == 1
    assert f"there is no folder {other}" in capsys.readouterr().err
    assert not other.exists()  # a lake that nobody reads is not made
    (other / "silver").mkdir(parents=True)
    assert hold.main(["hold", "--all"]) == 1
    reported = capsys.readouterr()
    assert "no controller has done anything within an hour" in reported.err
    assert "nothing is sent" not in reported.out
    assert Lease(str(other), "Spare", "a controller", time.time).take()
    assert hold.main(["hold", "Prod"]) == 1  # of this cluster no controller has a lease there
    assert hold.main(["hold", "--all"]) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "settings.toml").rename(tmp_path / "elsewhere" / "settings.toml")  # a namesake, not the one named
    assert hold.main(["hold", "--all"]) == 1
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    "make", [lambda path: path.mkdir(), lambda path: path.symlink_to("/nowhere"), lambda path: path.touch()]
)
@pytest.mark.parametrize("name", ["stop", "stop#1", "a b", "stop%2F"])
@pytest.mark.covers("harm hold-unknown")
def test_whatever_lies_among_the_holds_holds_everything_until_it_is_gone(lake, make, name) -> None:
    place = Path(lake, "_control", "holds", name)
    place.parent.mkdir(parents=True)
    make(place)
    assert held(lake) == ["all"]
    assert hold.main(["release", "--all"]) == (1 if place.is_dir() else 0)
    assert held(lake) == (["all"] if place.is_dir() else [])


@pytest.mark.covers("harm hold-unknown")
def test_a_folder_of_holds_that_is_none_holds_everything(lake) -> None:
    place = Path(lake, "_control", "holds")
    place.parent.mkdir(parents=True)
    place.symlink_to("/nowhere")
    assert held(lake) == ["all"]
    place.unlink()
    place.touch()
    assert held(lake) == ["all"]
    place.unlink()
    assert held(lake) == []


def test_holds_of_variable_and_settings_are_listed(lake, capsys, monkeypatch) -> None:
    monkeypatch.setenv("TIDEWISE_HOLD", "Prod/orders")
    monkeypatch.setenv("TIDEWISE__CLUSTERS__Prod__LIMITS__IS_HELD", "true")
    assert hold.main(["hold", "--list"]) == 0
    out = capsys.readouterr().out
    assert "Prod/orders is on hold: TIDEWISE_HOLD names it" in out
    assert "clusters.Prod.limits.is_held = true" in out


def test_a_step_that_waits_is_listed_approved_and_denied(lake, capsys) -> None:
    now_s = time.time()
    write_waiting(lake, now_s - 60)
    assert approve.main(["--list"]) == 0
    assert "Prod/orders, step step-1: Source: orders 2 -> 4, enrich 2 -> 4" in capsys.readouterr().out
    assert approve.main(["Prod/orders", "step-9"]) == 2
    assert "what waits: Prod/orders step-1" in capsys.readouterr().err
    assert approve.main([]) == 2
    assert approve.main(["Prod/orders", "step-1", "--by", "ada", "--hours", "1"]) == 0
    (reported,) = ApprovalStore(lake).read(time.time())
    assert (reported.is_approved, reported.by, dict(reported.parallelism_to)) == (
        True,
        "ada",
        {"Source: orders": 4, "enrich": 4},
    )
    assert 3590 < reported.until_s - now_s < 3700
    capsys.readouterr()
    assert approve.main(["--list"]) == 0
    assert capsys.readouterr().out == "no step waits for an answer\n"


def test_a_no_is_written_as_one(lake) -> None:
    write_waiting(lake, time.time() - 60)
    assert approve.main(["Prod/orders", "step-1", "--deny"]) == 0
    (reported,) = ApprovalStore(lake).read(time.time())
    assert not reported.is_approved
    assert json.dumps(reported.step_id) == '"step-1"'
