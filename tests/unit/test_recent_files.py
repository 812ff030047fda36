"""Which raw lines a controller that starts takes up again, and what it passes over."""

from __future__ import annotations

import gzip
import json
import os
import random
import tracemalloc
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from controller.command import warm_up
from controller.tick import Ticker
from controller.view.recent_files import list_clusters, polls_kept, read_recent, span_s
from include.flink.raw_format import RawRecord, hour_directory
from include.metric_sources.prometheus.import_hours import file_of, find_outcome
from include.metric_sources.prometheus.known_runs import read_runs
from include.settings import Cluster, Paths, Planner, Settings

AS_OF = datetime(2026, 11, 20, 12, 10, tzinfo=UTC)


def settings_for(raw: Path, policy: str = "planner") -> Settings:
    return Settings(paths=Paths(raw=str(raw)), planner=Planner(policy=policy))


def at(clock: str) -> datetime:
    hour, minute = map(int, clock.split(":"))
    return AS_OF.replace(hour=hour, minute=minute)


def line(clock: str, **changes: Any) -> str:
    """Return the line of a poll; a change may be of any type, as in a file that somebody else has written."""
    observed_at_ms = round(1000 * at(clock).timestamp())
    known = RawRecord(observed_at_ms, "c", "overview", "/overview", None, None, 200, "{}")
    return json.dumps(json.loads(known.to_line()) | changes)


def write(raw: Path, lines: Iterable[str], hour: datetime = AS_OF, name: str = "polls.jsonl") -> None:
    folder = hour_directory(raw, "c", hour)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(f"{one}\n" for one in lines))


def poll(raw: Path, *clocks: str) -> None:
    """Write one poll a file, each in the folder of its hour."""
    for clock in clocks:
        write(raw, [line(clock)], at(clock), f"{clock}.jsonl")


def read(raw: Path, as_of: datetime = AS_OF) -> list[str]:
    """Return the times of what is read."""
    records = read_recent(settings_for(raw), "c", as_of)
    return sorted(f"{datetime.fromtimestamp(one.observed_at_ms / 1000, UTC):%H:%M}" for one in records)


def packed() -> bytes:
    seeded = random.Random(3)
    texts = [line("12:02", body=f"{seeded.getrandbits(2000):x}") for _ in range(200)]
    return gzip.compress("".join(f"{one}\n" for one in texts).encode())


def zeros_within() -> bytes:
    """Return what a torn write leaves: zeros that the deflate stream stumbles over."""
    packer = zlib.compressobj(3, zlib.DEFLATED, 31)
    return packer.compress(f"{line('12:02')}\n".encode()) + packer.flush(zlib.Z_FULL_FLUSH) + bytes(64)


def cut() -> bytes:
    return packed()[: len(packed()) // 2]


def nothing() -> bytes:
    return b""


def not_compressed() -> bytes:
    return b"not gzip"


def wrong_check_sum() -> bytes:
    return packed()[:-8] + bytes(8)


def another_header() -> bytes:
    return b"\x1f\x8b\x07" + packed()[3:]


def rubbish_behind() -> bytes:
    return packed() + bytes(range(1, 200))


def no_text() -> bytes:
    return gzip.compress(bytes(range(256)) * 100)


DAMAGES = [
    *(zeros_within, cut, nothing, not_compressed),
    *(wrong_check_sum, another_header, rubbish_behind, no_text),
]


def test_a_policy_that_reacts_is_shown_more_hours_than_the_reactive_controller(tmp_path) -> None:
    planned, reacting = settings_for(tmp_path), settings_for(tmp_path, "reactive")
    assert (span_s(planned, "c"), span_s(reacting, "c")) == (900 + 300, 2 * 3600 + 300)
    assert polls_kept(planned) < polls_kept(reacting)
    long = planned.model_copy(update={"clusters": {"c": Cluster(window_s=1800)}})
    assert span_s(long, "c") == 4 * 1800


def test_clusters_are_those_with_a_folder(tmp_path) -> None:
    poll(tmp_path, "12:00")
    (tmp_path / "cluster=a b").mkdir()
    (tmp_path / "cluster=noted").write_text("a file that somebody has put there")
    assert list_clusters(tmp_path) == ["a b", "c"]


def test_what_was_polled_later_than_the_moment_is_not_read(tmp_path) -> None:
    poll(tmp_path, "12:05", "12:10", "12:11")
    assert read(tmp_path) == ["12:05", "12:10"]


def test_a_span_that_begins_in_the_hour_before_is_read_from_there(tmp_path) -> None:
    poll(tmp_path, "11:55", "12:05")
    assert read(tmp_path) == ["11:55", "12:05"]


def test_of_the_hour_before_no_more_than_an_hour_is_taken(tmp_path) -> None:
    poll(tmp_path, "11:01", "11:06", "12:05")
    assert read(tmp_path) == ["11:06", "12:05"]


def test_hours_before_the_span_stay_closed_where_the_span_has_polls(tmp_path) -> None:
    poll(tmp_path, "10:55", "11:52")
    assert read(tmp_path) == ["11:52"]


def test_without_polls_of_late_those_of_the_last_hour_with_files_count(tmp_path) -> None:
    poll(tmp_path, "09:50", "10:20", "10:40")
    assert read(tmp_path) == ["10:20", "10:40"]


@pytest.mark.parametrize(("age_h", "expected"), [(2, ["10:05"]), (5, [])])
def test_polls_that_are_older_than_a_plan_may_be_made_from_do_not_count(tmp_path, age_h: int, expected) -> None:
    poll(tmp_path, "10:05")
    assert read(tmp_path, at("10:10") + timedelta(hours=age_h)) == expected


def test_files_that_ingestion_does_not_read_are_not_read_here(tmp_path) -> None:
    write(tmp_path, [line("12:01")])
    for name, clock in ((".polls.jsonl", "12:02"), ("_polls.jsonl", "12:03"), ("polls.jsonl.tmp", "12:04")):
        write(tmp_path, [line(clock)], name=name)
    assert read(tmp_path) == ["12:01"]


def test_lines_of_another_cluster_are_its_own_matter(tmp_path) -> None:
    write(tmp_path, [line("12:01"), line("12:02", cluster="another")])
    assert read(tmp_path) == ["12:01"]


@pytest.mark.parametrize(
    "changes",
    [
        {"observed_at_ms": 1000.0 * at("12:02").timestamp()},
        {"observed_at_ms": True},
        {"body": {"jobs": []}},
        {"body": None},
        {"kind": 3},
        {"status": "200"},
        {"status": True},
        {"job_id": {"a": 1}},
        {"vertex_id": 7},
    ],
    ids=str,
)
def test_a_line_with_a_value_of_another_type_is_passed_over(tmp_path, changes: dict[str, Any]) -> None:
    write(tmp_path, [line("12:01"), line("12:02", **changes), line("12:03")])
    assert read(tmp_path) == ["12:01", "12:03"]


@pytest.mark.parametrize("broken", ["", "{", "[]", "3", '{"kind": "job"}'])
def test_a_line_that_is_no_record_is_passed_over(tmp_path, broken: str) -> None:
    write(tmp_path, [broken, line("12:01")])
    assert read(tmp_path) == ["12:01"]


def test_without_files_nothing_is_read(tmp_path) -> None:
    assert read(tmp_path) == []


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__)
def test_a_damaged_file_costs_neither_the_start_nor_the_files_beside_it(tmp_path, damage) -> None:
    write(tmp_path, [line("12:01")])
    (hour_directory(tmp_path, "c", AS_OF) / "again.jsonl.gz").write_bytes(damage())
    assert "12:01" in read(tmp_path)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__)
def test_a_damaged_file_costs_no_import_of_the_hours_beside_it(tmp_path, damage) -> None:
    hour = AS_OF.replace(minute=0)
    path = file_of(tmp_path, "c", hour)
    path.parent.mkdir(parents=True)
    path.write_bytes(damage())
    assert find_outcome(tmp_path, "c", hour) == ("" if damage is nothing else "there")
    assert read_runs(tmp_path, "c", hour + timedelta(hours=1)) == {}


def test_a_line_without_an_end_costs_little_memory(tmp_path) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    folder = hour_directory(tmp_path, "c", AS_OF)
    folder.mkdir(parents=True)
    pieces = [packer.compress(b" " * 2**20) for _ in range(300)]
    (folder / "polls.jsonl.gz").write_bytes(b"".join([*pieces, packer.flush()]))
    tracemalloc.start()
    try:
        assert read(tmp_path) == []
        assert tracemalloc.get_traced_memory()[1] < 200 * 2**20
    finally:
        tracemalloc.stop()


def test_a_cluster_that_cannot_be_read_keeps_no_other_from_the_start(tmp_path) -> None:
    write(tmp_path, [line("12:01")])
    polled: list[RawRecord] = []
    ticker = SimpleNamespace(add_records=polled.extend)
    warmed = warm_up(cast(Ticker, ticker), settings_for(tmp_path), ["no\0name", "c"], AS_OF.timestamp())
    assert (warmed, len(polled)) == (1, 1)


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def link_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_itself(path: Path) -> None:
    path.symlink_to(path)


def make_folder(path: Path) -> None:
    path.mkdir()


def pad_with_nul(path: Path) -> None:
    """A file whose blocks were given before a power cut, and not yet filled."""
    path.write_bytes(bytes(8192))


@pytest.mark.parametrize("make", [make_pipe, link_device, link_itself, make_folder, pad_with_nul])
@pytest.mark.parametrize("name", ["odd.jsonl", "odd.jsonl.gz"])
@pytest.mark.covers("harm unreadable-file")
def test_what_is_no_file_holds_no_start_up(tmp_path, make, name: str) -> None:
    """A pipe that nobody writes to would be waited for, a device would never end."""
    write(tmp_path, [line("12:01")])
    make(hour_directory(tmp_path, "c", AS_OF) / name)
    assert read(tmp_path) == ["12:01"]
    assert read_runs(tmp_path, "c", AS_OF.replace(minute=0) + timedelta(hours=1)) == {}
