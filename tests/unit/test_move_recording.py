"""Recordings of several days are moved into one hour."""

from __future__ import annotations

import gzip
import json

from tools.move_recording import MINUTE_MS, move_line, move_recording

AT_MS = 1_795_683_879_259


def raw_line(body: str, at_ms: int = AT_MS) -> str:
    return json.dumps({"observed_at_ms": at_ms, "cluster": "c", "kind": "job", "endpoint": "/", "body": body})


def test_times_move_and_nothing_else_does():
    body = f'{{"start-time":{AT_MS - 5000},"jid":"17956838792590000000","read-records":{AT_MS * 2},"end-time":-1}}'
    moved = json.loads(move_line(raw_line(body), -MINUTE_MS))
    assert moved["observed_at_ms"] == AT_MS - MINUTE_MS
    assert moved["body"] == body.replace(str(AT_MS - 5000), str(AT_MS - 5000 - MINUTE_MS))


def test_a_recording_moves_into_the_directories_of_its_new_hours(tmp_path):
    hour = tmp_path / "cluster=c" / "date=2026-11-26" / "hour=09"
    hour.mkdir(parents=True)
    with gzip.open(hour / "recorded-x.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(raw_line("{}") + "\n" + raw_line("[]", AT_MS + 1000) + "\n")
    assert move_recording(tmp_path, -60 * MINUTE_MS) == 2
    (path,) = tmp_path.rglob("*.jsonl.gz")
    assert path.parent.relative_to(tmp_path).as_posix() == "cluster=c/date=2026-11-26/hour=08"
