"""Progress lines: what is being done, of how many, and what is left."""

from __future__ import annotations

import io
import re

from rich.console import Console

from cli.progress import ProgressLog


def begun(parts):
    stream = io.StringIO()
    return ProgressLog(Console(file=stream, width=60), parts), stream


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
