"""docs/limits.md: every block of settings loads and does what the text says, every command runs."""

from __future__ import annotations

import re
import shlex
import time
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from waiting_step import write_waiting

from cli import approve, hold
from controller.limits.limits_of_job import LimitsReader
from include.control.holds import HoldStore
from include.settings import SETTINGS_FILE_VARIABLE, Settings, check_settings
from models.control.limits import Limits
from models.control.state import Mode

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "limits.md").read_text()
OF_A_PACKAGE = "[project"  # how a team's own package names its rules
BLOCKS = [
    check_settings(tomllib.loads(block))
    for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    if not block.startswith(OF_A_PACKAGE)
]
COMMANDS = re.findall(r"^tidewise (hold|release|approve)(.*)$", PAGE, re.MULTILINE)
LEVELS, LOOSER, ROLES, BLACKOUT, PINS, OPERATORS, PRIORITIES = BLOCKS


def limits_of(settings: Settings, job: str = "checkout", at: datetime | None = None) -> Limits:
    now_s = time.time() if at is None else at.timestamp()
    reader = LimitsReader(lambda: settings, lambda clusters, now: [], lambda now: [], lambda: now_s)
    return reader.read_limits("production", job, {"Source: payments": "v1", "sink": "v2"})


def test_levels_combine_as_the_page_says() -> None:
    checkout, other = limits_of(LEVELS), limits_of(LEVELS, "other")
    assert (checkout.slots_min, checkout.slots_max, checkout.rescales_per_day) == (4, 32, 12)
    assert (checkout.mode, checkout.cooldown_s, checkout.cluster_slots_max) == (Mode.APPROVE, 900, 200)
    assert (other.slots_min, other.cooldown_s) == (2, 300)


def test_one_job_is_looser_than_its_cluster() -> None:
    assert limits_of(LOOSER).mode is Mode.AUTO
    assert limits_of(LOOSER, "other").mode is Mode.DRY_RUN


@pytest.mark.parametrize(
    ("at", "is_on"),
    [((24, 7, 0), True), ((24, 16, 59), True), ((24, 6, 59), False), ((24, 17, 0), False), ((28, 10, 0), False)],
)
def test_the_blackout_is_on_as_the_page_says(at: tuple[int, int, int], is_on: bool) -> None:
    day, hour, minute = at  # UTC; 24 November 2026 is a Tuesday
    assert limits_of(BLACKOUT, at=datetime(2026, 11, day, hour, minute, tzinfo=UTC)).in_blackout is is_on


def test_pins_are_as_the_page_says() -> None:
    before, after = datetime(2026, 12, 1, 5, 59, tzinfo=UTC), datetime(2026, 12, 1, 6, 0, tzinfo=UTC)
    assert (limits_of(PINS, at=before).pin_all, limits_of(PINS, at=after).pin_all) == (8, None)
    assert limits_of(PINS, "fraud").pin == {"v1": 4}


def test_roles_operators_and_priorities_are_as_the_page_says() -> None:
    assert [ROLES.roles.may("hold", one) for one in ("carol", "dan", "eve")] == [True, True, False]
    assert not ROLES.roles.may("approve", "carol")
    limits = limits_of(OPERATORS)
    assert (limits.operator_min, limits.operator_max, limits.left_alone) == ({"v1": 2}, {"v1": 12}, ("v2",))
    reader = LimitsReader(lambda: PRIORITIES, lambda clusters, now: [], lambda now: [], time.time)
    assert [reader.read().priority_of("production", job) for job in ("checkout", "fraud", "x")] == [10, 5, 0]


def test_the_commands_run(tmp_path, monkeypatch, capsys) -> None:
    path, lake = tmp_path / "settings.toml", str(tmp_path / "lake")
    path.write_text(
        f'[paths]\nlake = "{lake}"\n[clusters.production]\nrest_url = "http://j:8081"\n'
        '[limits.jobs."production/checkout"]\n[limits.jobs."production/word count"]\n'
    )
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(path))
    write_waiting(lake, time.time() - 60, "production", "checkout", "5f0c2d1ab3")
    done = []
    for command, arguments in COMMANDS:
        words = shlex.split(arguments)
        if command == "approve":
            if "--deny" in words:
                write_waiting(lake, time.time(), "production", "checkout", "5f0c2d1ab4")
            if {"--deny", "--lift"} & set(words):
                words[1] = "5f0c2d1ab4"
            assert approve.main(words) == 0, words
        else:
            assert hold.main([command, *words]) == 0, words
        done.append((command, words))
    assert len(done) == len(COMMANDS) >= 10
    assert HoldStore(lake).read(time.time()) == []
    assert "production/checkout is on hold" in capsys.readouterr().out
    (quoted,) = re.findall(r"quoted: `([^`]+)`", PAGE)
    assert hold.main(["hold", *shlex.split(quoted)]) == 0
