"""``tidewise settings --migrate``: a file of an earlier release keeps what it can, and says what it dropped."""

from __future__ import annotations

import tarfile
import tomllib
from pathlib import Path

import pytest

from cli import console
from include.settings import PROJECT, Settings, SettingsError, check_settings
from include.settings.migration import migrate
from include.settings.retired import Constant, list_constants

OLD = """# mine
[apply]
mode = "approve"   # a person answers
tick_s = 30

[planner]
load_quantile = 0.8
reactive = { lag_s = 3, hold_s = 4 }
policies = { "prod/orders" = "planner" }

[planner.costs]   # prices
late_weight = 2.0 # dear
rescale_margin = 6

[clusters.prod]
rest_url = "http://flink:8081"
apply_mode = "dry-run"
[clusters.prod.limits]
slots_min = 2
steps = { up_max_slots = 4 }
step_down_max_slots = 1
"""
TODAY = {
    "apply": {"tick_s": 30},
    "planner": {"policies": {"prod/orders": "planner"}, "costs": {"late_weight": 2.0}},
    "clusters": {
        "prod": {
            "rest_url": "http://flink:8081",
            "limits": {"mode": "dry-run", "slots_min": 2, "steps": {"up_max_slots": 4}},
        }
    },
    "limits": {"mode": "approve"},
}


def test_a_file_of_an_earlier_release_is_rewritten() -> None:
    old = OLD.replace("step_down_max_slots = 1\n", "")
    made = migrate(old)
    values = tomllib.loads(made.text)
    assert values == TODAY
    assert check_settings(values)
    kept = [line for line in old.splitlines() if "#" in line]
    assert [line for line in kept if line not in made.text] == []
    assert [note.partition(" = ")[0].partition(" is ")[0] for note in made.notes] == [
        "apply.mode",
        "planner.load_quantile",
        "planner.reactive.lag_s",
        "planner.reactive.hold_s",
        "planner.costs.rescale_margin",
        "clusters.prod.apply_mode",
    ]
    assert "# planner.costs.rescale_margin = 6: is a constant now: 3, because" in made.text
    assert migrate(made.text).notes == []


def test_a_value_over_several_lines_is_dropped_as_a_whole() -> None:
    made = migrate('[planner]\npolicy = "planner"\nload_quantile = """\n0.8"""\ngoal = "cheap"\n')
    assert tomllib.loads(made.text) == {"planner": {"policy": "planner", "goal": "cheap"}}


def test_a_key_among_others_of_an_inline_table_is_left_to_a_person() -> None:
    text = "planner = { costs = { late_weight = 1, rescale_margin = 6 } }\n"
    made = migrate(text)
    assert made.text == text
    assert made.notes[0].endswith("(left: change it by hand)")


def test_what_is_set_at_its_present_place_stays() -> None:
    made = migrate('[limits]\nmode = "off"\n[apply]\nmode = "auto"\n')
    assert tomllib.loads(made.text) == {"limits": {"mode": "off"}, "apply": {}}


@pytest.mark.parametrize("written", [False, True])
def test_nothing_is_written_unless_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, written: bool
) -> None:
    path = tmp_path / "tidewise.toml"
    path.write_text("[planner]\nload_quantile = 0.8\n")
    given = ["settings", "--migrate", "--file", str(path), *(["--write"] if written else [])]
    assert console.main(given) == 0
    assert "load_quantile" in capsys.readouterr().out
    assert ("# load_quantile" in path.read_text()) == written
    assert (tmp_path / "tidewise.toml.before").exists() == written
    assert console.main(["settings", "--file", str(path)]) == int(not written)
    assert ("is a constant now: 0.9" in capsys.readouterr().out) != written


def test_a_file_that_is_no_toml_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tidewise.toml"
    path.write_text("[planner\n")
    assert console.main(["settings", "--migrate", "--write", "--file", str(path)]) == 2
    assert f"settings: {path} cannot be read" in capsys.readouterr().err


def written(one: Constant, value: object) -> dict[str, object]:
    values = value
    for part in reversed(one.path):
        values = {part.replace("<name>", "any"): values}
    assert isinstance(values, dict)
    return values


@pytest.mark.parametrize("one", list(list_constants(Settings)), ids=lambda one: ".".join(one.path))
def test_each_constant_is_refused_with_its_value_and_reason_where_another_one_is_written(one: Constant) -> None:
    check_settings(written(one, one.value))
    other = not one.value if isinstance(one.value, bool) else one.value + 1  # type: ignore[operator]
    with pytest.raises(SettingsError, match="is a constant now") as refused:
        check_settings(written(one, other))
    assert one.because in str(refused.value)
    assert len(one.because) > 20


def test_settings_of_the_release_before_open_and_are_rewritten_to_the_same() -> None:
    with tarfile.open(PROJECT / "data" / "release_before" / "release_before.tar.xz") as archive:
        (name,) = (one for one in archive.getnames() if one.endswith("tidewise.toml"))
        text = archive.extractfile(name).read().decode()  # type: ignore[union-attr]
    made = migrate(text)
    assert len(made.notes) == 33
    assert check_settings(tomllib.loads(made.text)) == check_settings(tomllib.loads(text))
