"""Progress lines: what is being done, of how many, and what is left."""

from __future__ import annotations

import io
import re
import time

from rich.console import Console

from cli.progress import ProgressLog


def begun(parts, **options):
    stream = io.StringIO()
    return ProgressLog(Console(file=stream, width=60), parts, **options), stream


def test_each_line_says_what_of_how_many_and_what_is_left():
    progress, stream = begun({"data": "files", "train": "models of every job", "plan": "steps"})
    progress.begin("data")
    progress.begin("train")
    progress.begin("plan")
    progress.end()
    lines = [re.sub(r"^ +\d+\.\d s  ", "", line) for line in stream.getvalue().splitlines()]
    assert lines == [
        "1 of 3  data: files (then train, plan)",
        "2 of 3  train: models of every job (then plan)",
        "3 of 3  plan: steps",
    ]
    assert list(progress.seconds) == ["data", "train", "plan"]


def test_a_part_begins_once_and_other_names_are_passed_over():
    progress, stream = begun({"train": "models"})
    for name in ("train", "train", "learn"):
        progress.begin(name)
    progress.end()
    progress.begin("train")
    progress.end()
    assert len(stream.getvalue().splitlines()) == 1
    assert list(progress.seconds) == ["train"]


def test_seconds_are_those_between_two_parts(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("cli.progress.time.monotonic", lambda: now[0])
    progress, _ = begun({"data": "files", "train": "models"})
    progress.begin("data")
    now[0] += 12.0
    progress.begin("train")
    now[0] += 30.5
    progress.end()
    assert progress.seconds == {"data": 12.0, "train": 30.5}


def test_a_part_that_prints_nothing_says_that_it_is_at_work():
    progress, stream = begun({"train": "models"}, silent_s=0.02)
    with progress.never_silent():
        time.sleep(0.1)
        assert stream.getvalue() == ""  # no part is at work yet
        progress.begin("train")
        deadline = time.monotonic() + 30
        while "still" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "train: still at work, 0 s so far" in stream.getvalue()
    ended = stream.getvalue()
    time.sleep(0.1)
    assert stream.getvalue() == ended


def test_a_part_that_prints_is_not_interrupted():
    progress, stream = begun({"train": "models"}, silent_s=30.0)
    with progress.never_silent():
        progress.begin("train")
        time.sleep(0.1)
    assert len(stream.getvalue().splitlines()) == 1
