"""What lies below the raw root: files of any name, and what can be none."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from include.raw_files import LocalFiles, RawFile, walk
from spark_jobs.raw_parsing.raw_contents import FileRequest, share_out

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = "cluster=c/date=2026-11-20"


def found(root: Path, hours: Iterable[datetime] = (START,)) -> dict[str, RawFile]:
    return {file.name: file for file in walk(LocalFiles(str(root)), hours)}


def touch(root: Path, place: str, content: bytes = b"x") -> None:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@pytest.mark.covers("ingest_review 1.3")
@pytest.mark.parametrize(
    "name", [b"a[1]", b"b{2}", b"c\\3", b"d:4", b"e*?", b"f\n", b"\xe9", b"$x", b"-rf", b" ", "💥".encode()]
)
def test_any_name_that_the_file_system_allows(tmp_path, name):
    touch(tmp_path, f"{DAY}/hour=10/{os.fsdecode(name)}.jsonl.gz", b"content")
    (file,) = found(tmp_path).values()
    assert (file.cluster, file.hour, file.size, file.is_readable) == ("c", START, 7, True)
    assert Path(os.fsdecode(file.local_path)).read_bytes() == b"content"
    file.name.encode()  # valid UTF-8


@pytest.mark.covers("ingest_review 2.8")
def test_what_is_misplaced_is_named_and_nothing_else_is_lost(tmp_path):
    good = f"{DAY}/hour=10/a.jsonl"
    misplaced = [
        "cluster=/x", "CLUSTER=c/date=2026-11-20/hour=10/a.jsonl", "a.jsonl", "cluster=c/DATE=2026-11-20/x",
        "cluster=c/date=2026-02-30/x", "cluster=c/a.jsonl", f"{DAY}/hour=24/a.jsonl", f"{DAY}/hour=1/a.jsonl",
        f"{DAY}/a.jsonl", f"{DAY}/hour=10/a.json.gz",
        f"{DAY}/hour=10/A.JSONL", f"{DAY}/hour=10/deeper/a.jsonl", f"{DAY}/hour=10/.jsonl.gz.bak",
    ]  # fmt: skip
    for place in [
        good,
        *misplaced,
        f"{DAY}/hour=11/other.jsonl",
        f"{DAY}/hour=10/.half.jsonl",
        f"{DAY}/hour=10/_half.jsonl",
    ]:
        touch(tmp_path, place)
    files = found(tmp_path)
    assert {name for name, file in files.items() if file.is_readable} == {good}
    tops = {
        "cluster=",
        "CLUSTER=c",
        "a.jsonl",
        "cluster=c/DATE=2026-11-20",
        "cluster=c/date=2026-02-30",
        "cluster=c/a.jsonl",
    }
    days = {f"{DAY}/{name}" for name in ("hour=24", "hour=1", "a.jsonl")}
    inside = {f"{DAY}/hour=10/{name}" for name in ("a.json.gz", "A.JSONL", "deeper")}
    assert {name for name, file in files.items() if file.is_misplaced} == tops | days | inside
    assert all(file.hour == START for file in files.values())


@pytest.mark.covers("ingest_review 1.4")
def test_what_cannot_be_looked_at_is_named(tmp_path):
    touch(tmp_path, f"{DAY}/hour=10/good.jsonl")
    hour = tmp_path / DAY / "hour=10"
    (hour / "gone.jsonl").symlink_to("nowhere")
    (hour / "loop.jsonl").symlink_to("loop.jsonl")
    os.mkfifo(hour / "pipe.jsonl")
    (hour / "empty.jsonl").touch()
    (tmp_path / DAY / "hour=11").symlink_to("hour=11")
    (tmp_path / "cluster=d").symlink_to("cluster=d")
    (tmp_path / "cluster=e").write_text("a file")
    reasons = {name: file.fault and file.fault[0] for name, file in found(tmp_path, [START, START + HOUR]).items()}
    assert reasons == {
        f"{DAY}/hour=10/good.jsonl": None,
        f"{DAY}/hour=10/gone.jsonl": "unreadable_file",
        f"{DAY}/hour=10/loop.jsonl": "unreadable_file",
        f"{DAY}/hour=10/pipe.jsonl": "unreadable_file",
        f"{DAY}/hour=10/empty.jsonl": "empty_file",
        f"{DAY}/hour=11": "unreadable_file",
        "cluster=d": "unreadable_file",
        "cluster=e": "misplaced_file",
    }


@pytest.mark.covers("ingest_review 1.4")
@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_listed_is_named(tmp_path):
    touch(tmp_path, f"{DAY}/hour=10/a.jsonl")
    (tmp_path / DAY / "hour=10").chmod(0)
    try:
        (file,) = found(tmp_path).values()
    finally:
        (tmp_path / DAY / "hour=10").chmod(0o700)
    assert file.fault == ("unreadable_folder", "Permission denied")


def test_files_are_shared_out_by_size_in_the_order_of_their_hours():
    files = [FileRequest(f"{n:02}", "c", START + (n // 10) * HOUR, None, None, b"x", "", 1_000_000) for n in range(40)]
    slices = share_out(reversed(files), cores=4)
    assert [len(one) for one in slices] == [10, 10, 10, 10]
    assert [file.name for one in slices for file in one] == sorted(file.name for file in files)
    large = [*files[:3], FileRequest("99", "c", START + 9 * HOUR, None, None, b"x", "", 300 * 2**20)]
    assert [file.name for one in share_out(large, cores=2) for file in one] == ["00", "01", "02", "99"]
    assert len(share_out(files[:1], cores=8)) == 1
    assert share_out([], cores=2) == []
