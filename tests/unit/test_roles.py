"""Who may approve, hold and change limits, and how a no stands beside a yes."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from waiting_step import write_waiting

from cli import approve, hold
from cli.doctor.control_folder import check_control_folder, list_writers
from cli.permission import read_login
from controller.limits.limits_of_job import open_limits
from controller.limits.settings_watch import SettingsWatch
from include.control.approvals import FOLDER, NOBODY, Approval, ApprovalStore
from include.control.holds import HoldStore
from include.settings import SETTINGS_FILE_VARIABLE, Roles, check_settings, load_settings

LOGIN = read_login()
STEP = ["Prod/orders", "step-1"]
Write = Callable[..., str]


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write settings with roles, and a lake in which a step waits; returns the lake."""
    monkeypatch.delenv("TIDEWISE_HOLD", raising=False)

    def write(**roles: list[str]) -> str:
        path = tmp_path / "settings.toml"
        written = "".join(f"{name} = {json.dumps(logins)}\n" for name, logins in roles.items())
        lake = tmp_path / "lake"
        path.write_text(f'[paths]\nlake = "{lake}"\n[clusters.Prod]\nrest_url = "http://j:8081"\n[roles]\n{written}')
        path.chmod(0o644)
        monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(path))
        if not lake.exists():
            write_waiting(str(lake), time.time() - 60)
        return str(lake)

    return write


def answers(lake: str) -> list[tuple[bool, str]]:
    return sorted((one.is_approved, one.by) for one in ApprovalStore(lake).read(time.time()))


def test_where_nobody_is_named_everyone_may(installation: Write) -> None:
    lake = installation()
    assert approve.main([*STEP, "--by", "ada"]) == 0
    assert answers(lake) == [(True, "ada")]
    assert hold.main(["hold", "--all", "--by", "ada"]) == 0
    assert hold.main(["release"]) == 0


def test_who_is_not_named_can_neither_approve_nor_hold_nor_release(installation: Write, capsys, monkeypatch) -> None:
    lake = installation(approve=["somebody"], hold=["somebody"])
    monkeypatch.setenv("USER", "somebody")
    monkeypatch.setenv("LOGNAME", "somebody")  # the login is the user's of the process
    for arguments in (STEP, [*STEP, "--deny"], [*STEP, "--by", "somebody"]):
        assert approve.main(arguments) == 1
        assert f"NO ANSWER WAS GIVEN: {LOGIN} may not: roles.approve names somebody" in capsys.readouterr().err
    assert answers(lake) == []
    assert hold.main(["hold", "--all"]) == 1
    assert f"FAILED: {LOGIN} may not" in capsys.readouterr().err
    assert HoldStore(lake).read(time.time()) == []
    installation()
    hold.main(["hold", "--all"])
    installation(hold=["somebody"])
    assert hold.main(["release"]) == 1
    assert len(HoldStore(lake).read(time.time())) == 1
    assert hold.main(["hold", "--list"]) == approve.main(["--list"]) == 0


def test_who_is_named_goes_by_their_login(installation: Write, capsys) -> None:
    lake = installation(approve=[LOGIN], admin=["root of all"])
    assert approve.main([*STEP, "--by", "somebody"]) == 1
    assert "leave out --by somebody" in capsys.readouterr().err
    assert approve.main(STEP) == 0
    assert answers(lake) == [(True, LOGIN)]
    installation(approve=["somebody"], admin=[LOGIN])
    assert approve.main(["--list"]) == 0


def test_an_answer_of_somebody_who_is_not_named_is_no_yes_for_the_controller(installation: Write) -> None:
    lake = installation()
    assert approve.main([*STEP, "--by", "ada"]) == 0
    settings = load_settings()
    ids = {"Source: orders": "a", "enrich": "b"}
    for roles, count in ((Roles(), 1), (Roles(approve=("ada",)), 1), (Roles(approve=("bob",)), 0)):
        limited = settings.model_copy(update={"roles": roles})
        limits = open_limits(settings, time.time, lambda limited=limited: limited)
        assert len(limits.read_limits("Prod", "orders", ids).approvals) == count
    assert ApprovalStore(lake).read(time.time())


@pytest.mark.covers("harm no-lifted")
def test_a_no_stands_beside_every_later_yes_until_its_author_lifts_it(installation: Write, capsys) -> None:
    lake = installation()
    step = ApprovalStore(lake)
    assert approve.main([*STEP, "--deny", "--by", "ada"]) == 0
    (no,) = step.read(time.time())
    for by in ("ada", "bob"):
        step.write(replace(no, is_approved=True, by=by))
    assert answers(lake) == [(False, "ada"), (True, "ada"), (True, "bob")]
    capsys.readouterr()
    assert approve.main([*STEP, "--lift", "--by", "bob"]) == 2
    assert "lifted by who has said it, ada, or by one of roles.admin; you are bob" in capsys.readouterr().err
    assert approve.main(["Prod/orders", "step-2", "--lift", "--by", "ada"]) == 2
    assert "nobody has said no to Prod/orders step-2; there is: Prod/orders step-1" in capsys.readouterr().err
    assert approve.main(["--list"]) == 0
    assert "Prod/orders step-1: ada has said no" in capsys.readouterr().out
    assert approve.main([*STEP, "--lift", "--by", "ada"]) == 0
    assert answers(lake) == [(True, "ada"), (True, "bob")]


def test_an_admin_lifts_the_no_of_anybody_and_anybody_the_no_of_nobody(installation: Write) -> None:
    lake = installation()
    approve.main([*STEP, "--deny", "--by", "ada"])
    installation(admin=[LOGIN])
    assert approve.main([*STEP, "--lift"]) == 0
    assert answers(lake) == []
    no = Approval("Prod", "orders", "step-1", {}, {}, False, NOBODY, time.time(), time.time() + 60)
    ApprovalStore(lake).write(no)
    installation()
    assert approve.main([*STEP, "--lift"]) == 0
    assert answers(lake) == []


def test_an_object_that_cannot_be_read_may_be_a_no_so_no_yes_counts(installation: Write) -> None:
    lake = installation()
    approve.main([*STEP, "--by", "ada"])
    approve.main([*STEP, "--by", "ada"])  # an answered step waits no longer
    broken = Path(lake) / FOLDER / "half.json"
    broken.write_text('{"cluster": "Prod", "is_appro')
    assert answers(lake) == []
    result = check_control_folder(load_settings())
    assert any("1 objects in _control/approvals are no answer" in one.text for one in result)
    broken.unlink()
    assert answers(lake) == [(True, "ada")]


def test_answers_with_times_that_are_none(installation: Write) -> None:
    lake = installation()
    folder = Path(lake) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    about = {"cluster": "Prod", "job": "orders", "step_id": "s", "by": "x", "at_s": 0}
    for name, is_approved, until_s in (("a", True, "NaN"), ("b", False, "NaN"), ("c", False, "Infinity")):
        text = json.dumps({**about, "by": name, "is_approved": is_approved}).rstrip("}") + f', "until_s": {until_s}}}'
        (folder / name).write_text(text)
    assert answers(lake) == [(False, "b"), (False, "c")]
    ApprovalStore(lake).delete_expired(time.time() + 1e9)
    assert answers(lake) == [(False, "b"), (False, "c")]


# who may change limits


def test_the_settings_file_is_of_somebody_who_may_change_limits(installation: Write, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    installation(limits=["somebody"])
    reported = f"belongs to {LOGIN}, who may not change limits; roles.limits names somebody"
    assert reported in why_unusable()
    assert reported in check_control_folder(load_settings())[-1].text  # stages go by a copy, which anybody may own
    installation(limits=["somebody"], admin=[LOGIN])
    assert why_unusable() == ""
    installation(limits=[LOGIN])
    for mode in (0o664, 0o646):
        path.chmod(mode)
        assert re.search(f"can be written by others than its owner .*chmod go-w {path}", why_unusable())
    path.chmod(0o644)
    assert why_unusable() == ""


def why_unusable() -> str:
    return SettingsWatch(load_settings, time.time).read().why_unusable


def test_a_new_file_does_not_say_anew_who_may_change_it(installation: Write, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    installation(limits=[LOGIN])
    now = [1000.0]
    watch = SettingsWatch(load_settings, lambda: now[0])
    assert watch.read().settings is not None
    installation()  # without roles, and everyone may write it
    path.chmod(0o666)
    now[0] += 10
    for _ in range(2):
        state = watch.read()
        assert (state.settings, "can be written by others" in state.why_unusable) == (None, True)
        os.utime(path, ns=(1, int(now[0])))
        now[0] += 10
    path.chmod(0o644)
    os.utime(path, ns=(1, 7))
    assert watch.read().settings is not None


# who can write the control folder


@pytest.mark.covers("harm answers-open")
def test_the_doctor_says_who_can_write_what_the_controller_obeys(tmp_path: Path) -> None:
    settings = check_settings({"paths": {"lake": str(tmp_path / "lake")}})
    assert check_control_folder(settings) == []
    folder = tmp_path / "lake" / FOLDER
    folder.mkdir(parents=True)
    for place in (folder, folder.parent, folder.parent.parent):
        place.chmod(0o755)
    reported = [(str(one.level), one.text) for one in check_control_folder(settings)]
    assert len(reported) == 3
    assert all(level == "ok" and f"can be written by the user {LOGIN}:" in text for level, text in reported)
    folder.chmod(0o775)
    assert f"by the user {LOGIN} and the group " in check_control_folder(settings)[-1].text
    folder.chmod(0o777)
    last = check_control_folder(settings)[-1]
    assert (str(last.level), "drwxrwxrwx" in last.text, "by everyone" in last.text) == ("warning", True, True)
    bucket = check_settings({"paths": {"lake": "s3://bucket/lake"}})
    assert "whoever may write s3a://bucket/lake/_control" in list_writers(bucket)[0].text
