"""Raw files that gave rows and are gone, or hold less, are found and named."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from include.lost_input import InputFile, SourceFile, describe_lost, find_lost
from include.raw_files import EMPTY, MISPLACED, RawFile
from include.stage_names import Stage
from include.stage_request import StageRequest, parse_requests
from include.utc import HOUR, Interval

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
KNOWN = SourceFile("c/a.jsonl.gz", 40, START)
THERE = RawFile(KNOWN.name, "c", START, 100)


@pytest.mark.covers("harm input-gone", "harm input-less")
@pytest.mark.parametrize(
    ("known", "listed", "read", "why"),
    [
        (KNOWN, [THERE], {KNOWN.name: InputFile(40)}, ""),
        (KNOWN, [THERE], {KNOWN.name: InputFile(41)}, ""),
        (KNOWN, [THERE], {}, ""),  # of a directory beside the run's own, which this run does not read
        (KNOWN, [RawFile("c/a.jsonl", "c", START, 900)], {"c/a.jsonl": InputFile(40)}, ""),  # it was decompressed
        (KNOWN, [], {}, "is not among the files"),
        (KNOWN, [RawFile("c/b.jsonl.gz", "c", START, 100)], {}, "is not among the files"),
        (KNOWN, [RawFile(KNOWN.name, "c", START, fault=(MISPLACED, "x"))], {}, "is not among the files"),
        (KNOWN, [RawFile(KNOWN.name, "c", START, fault=(EMPTY, "0 bytes"))], {}, "empty_file: 0 bytes"),
        (KNOWN, [THERE], {KNOWN.name: InputFile(39)}, "39 of 40 lines are left"),
        (KNOWN, [THERE], {KNOWN.name: InputFile(12, "invalid block")}, "12 of 40 lines are left: invalid block"),
        (KNOWN, [THERE], {KNOWN.name: InputFile(0, "PermissionError: x", is_unreadable=True)}, "cannot be read"),
        (SourceFile(KNOWN.name), [THERE], {KNOWN.name: InputFile(1)}, ""),  # only its rows are known
        (SourceFile(KNOWN.name), [], {}, "is not among the files"),
    ],
)
def test_what_is_gone_is_found(known: SourceFile, listed: list[RawFile], read: dict[str, InputFile], why: str) -> None:
    lost = find_lost([known], listed, read)
    assert (list(lost) == [known] and why in lost[known]) if why else lost == {}


def test_the_message_says_what_is_gone_and_what_to_do_before_it_is_cut() -> None:
    lost = {SourceFile(f"cluster=c/{'x' * 90}{number}.jsonl.gz", 40, START): "is gone" for number in range(5)}
    reported = describe_lost(lost, "/mnt/raw", Interval(START, START + HOUR))
    assert reported.startswith(
        "5 raw files of which the lake has rows are gone or hold less (hours 2026-11-20T10:00:00Z to"
    )
    assert "nothing of 2026-11-20T10:00:00Z to 2026-11-20T11:00:00Z was replaced" in reported
    assert reported.endswith("and 2 more")
    assert "/mnt/raw is mounted here and on every worker" in reported[:450]
    assert "--force" in reported[:450]


def test_only_a_file_that_is_not_found_where_it_is_read_is_elsewhere() -> None:
    assert InputFile(0, "FileNotFoundError: [Errno 2] x", is_unreadable=True).is_elsewhere
    assert not InputFile(0, "PermissionError: [Errno 13] x", is_unreadable=True).is_elsewhere
    assert not InputFile(0, "FileNotFoundError").is_elsewhere


def test_force_goes_to_the_stage_and_back() -> None:
    request = StageRequest(Stage.INGEST, START, START, START + HOUR, is_forced=True)
    assert parse_requests(request.to_argv()) == (request,)
    plain = StageRequest(Stage.INGEST, START, START, START + HOUR)
    for given in ([], ["--force=no"]):
        assert parse_requests([*plain.to_argv(), *given]) == (plain,)
    assert parse_requests([*plain.to_argv(), "--force=yes"]) == (request,)
    with pytest.raises(SystemExit):
        parse_requests([*plain.to_argv(), "--force=maybe"])
