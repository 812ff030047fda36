"""`tidewise advise` as a command: which history it takes, what it refuses, and what of `make run` it leaves alone."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from command_complaints import read_complaint

from cli.arguments import CommandParser
from cli.run import RunError
from include.flink.raw_format import hour_directory, write_lines
from include.settings import Settings
from lab.commands import advise

END = datetime(2026, 11, 20, 20, tzinfo=UTC)


def read_options(argv: list[str]) -> argparse.Namespace:
    parser = CommandParser(prog="tidewise advise")
    advise.add_arguments(parser)
    return parser.parse_args(argv)


def raw_files(root: Path, hours: int) -> Path:
    for back in range(1, hours + 1):
        write_lines(hour_directory(root, "prod", END - timedelta(hours=back)) / "poll.jsonl.gz", ["{}"])
    return root


def test_hours_of_a_folder(tmp_path):
    assert advise.list_hours(raw_files(tmp_path, 50)) == (END - timedelta(hours=50), END)
    with pytest.raises(RunError, match=r"holds no raw files at cluster=<name>.*pass the folder"):
        advise.list_hours(tmp_path / "none")


def test_hours_of_a_folder_are_those_that_ingestion_reads(tmp_path):
    """Plain lines count, hidden and empty files do not."""
    for back, name, text in ((3, "a.jsonl", "{}"), (2, "b.jsonl.gz", ""), (5, ".c.jsonl", "{}"), (6, "d.jsonl", "")):
        path = hour_directory(tmp_path, "prod", END - timedelta(hours=back)) / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    write_lines(hour_directory(tmp_path, "prod", END - timedelta(hours=1)) / "e.jsonl.gz", ["{}"])
    assert advise.list_hours(tmp_path) == (END - timedelta(hours=3), END)


def test_what_make_run_has_ingested_is_taken_as_it_is(tmp_path):
    out = tmp_path / "out"
    (out / "lake" / "silver").mkdir(parents=True)
    (out / "lake" / "silver" / "kept").touch()
    (out / "stages").mkdir()
    (out / "stages" / "ingest.json").write_text(
        json.dumps({"start": "2026-10-30T20:00:00Z", "end": "2026-11-20T20:00:00Z"})
    )
    source = advise.find_source(read_options(["--out", str(out)]))
    assert (source.raw, source.end) == (None, END)
    work = out / "advise"
    (work / "lake" / "gold").mkdir(parents=True)
    (work / "mlflow.db").touch()
    advise.set_up_folder(work, source)
    assert (work / "lake" / "silver" / "kept").exists()
    assert not (work / "lake" / "gold").exists()
    assert not (work / "mlflow.db").exists()
    advise.set_up_folder(work, source)  # again: what it points to stays
    assert (out / "lake" / "silver" / "kept").exists()


def test_without_anything_the_shipped_history_is_made(tmp_path):
    source = advise.find_source(read_options(["--out", str(tmp_path)]))
    assert source.raw == tmp_path / "advise" / "raw"
    assert source.end - source.first == timedelta(days=21)


def test_flags_become_settings(tmp_path, monkeypatch):
    set_to: dict[str, str] = {}
    monkeypatch.setattr(advise.os, "environ", set_to)
    options = read_options(["--out", str(tmp_path), "--jobs", "prod/", "--days", "3", "--price-per-slot-hour", "0.2"])
    advise.set_environment(options, tmp_path / "advise", advise.Source(tmp_path, None, END, END))
    assert set_to["TIDEWISE__ADVISE__JOBS"] == "prod/"
    assert set_to["TIDEWISE__ADVISE__DAYS"] == "3"
    assert set_to["TIDEWISE__ADVISE__PRICE_PER_SLOT_HOUR"] == "0.2"
    assert "TIDEWISE__ADVISE__SEEDS" not in set_to
    assert set_to["TIDEWISE__PATHS__RAW"] == str(tmp_path)
    assert set_to["TIDEWISE__PATHS__LAKE"] == str(tmp_path / "advise" / "lake")


def test_only_the_jobs_that_are_asked_for_are_trained_and_appraised():
    made = advise.name_stages("prod/orders", END - timedelta(days=7), END)
    assert [(one.stage, one.as_of, one.jobs) for one in made] == [
        ("train", END - timedelta(days=7), "prod/orders"),
        ("advise", END - timedelta(days=7), "prod/orders"),
    ]
    assert {one.jobs for one in advise.name_stages(Settings().advise.jobs, END - timedelta(days=7), END)} == {None}


@pytest.mark.parametrize(("days", "says"), [(8, "pass --days 6"), (2, "collect some days more")])
def test_too_short_a_history_is_refused(days, says):
    source = advise.Source(None, None, END - timedelta(days=days), END)
    with pytest.raises(RunError, match=says):
        advise.check_length(source, Settings())


def test_long_enough_a_history_begins_with_the_days_before():
    source = advise.Source(None, None, END - timedelta(days=9), END)
    assert advise.check_length(source, Settings()) == END - timedelta(days=7)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--prometheus", "http://prometheus:9090", "--raw", "."], "one of the two"),
        (["--days", "0"], "a whole number from 1"),
        (["--as-of", "2026-11-20T20:30:00Z"], "a full hour"),
        (["--raw", "no/such"], "a folder that is there"),
        (["--price-per-slot-hour", "-1"], "a number from 0"),
    ],
)
def test_bad_arguments(options, says, capsys):
    assert says in read_complaint(advise.main, options, capsys)


def test_a_regular_expression_that_is_none(tmp_path, capsys):
    (tmp_path / "lake" / "silver").mkdir(parents=True)
    (tmp_path / "stages").mkdir()
    interval = {"start": "2026-10-30T20:00:00Z", "end": "2026-11-20T20:00:00Z"}
    (tmp_path / "stages" / "ingest.json").write_text(json.dumps(interval))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advise.os, "environ", dict(advise.os.environ))
        assert advise.main(["--out", str(tmp_path), "--jobs", "("]) == 1
    assert "is no regular expression" in capsys.readouterr().err
