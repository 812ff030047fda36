"""What a stage that ended well should not keep to itself: broken input, and nothing done."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from include.orchestration.stage_lines import show_levels
from include.stage_warnings import list_warnings

INGESTED = {"rows": 100, "quarantined": 0, "quarantined_values": 0, "quarantined_files": 0, "kept": 100}


@pytest.mark.parametrize(
    ("stage", "summary", "expected"),
    [
        ("ingest", INGESTED, []),
        ("ingest", INGESTED | {"quarantined": 2}, ["2 of 100 lines were quarantined"]),
        ("ingest", INGESTED | {"quarantined_values": 3}, ["3 values of metrics"]),
        ("ingest", INGESTED | {"quarantined_files": 1}, ["1 files could not be read"]),
        ("ingest", {"rows": 0, "start": "A", "end": "B"}, ["no line from A to B"]),
        ("plan", {"jobs": 0, "refused": 0}, ["no job was planned"]),
        ("plan", {"jobs": 9, "refused": 2}, ["2 jobs have no plan"]),
        ("plan", {"jobs": 9, "refused": 0}, []),
        ("train", {"gate": "passed"}, []),
        ("train", {"gate": "failed"}, ["the new models are not in use"]),
        ("forecast", {"forecasts": 0}, ["nothing was forecast"]),
        ("forecast", {"forecasts": 4, "stale": 1}, ["1 sources have no rate of late"]),
        ("report", {"shown": 0}, []),
    ],
)
def test_what_is_overlooked_in_green_is_said(stage: str, summary: dict[str, object], expected: list[str]) -> None:
    shown = list_warnings(stage, summary)
    assert len(shown) == len(expected)
    assert all(text.startswith(start) for text, start in zip(shown, expected, strict=True))


LINES = [
    ("warning", "tidewise: WARNING stage ingest: 2 of 100 lines were quarantined"),
    ("error", "tidewise: ERROR 3 lines are in no table"),
    ("error", "tidewise: stage train failed: NothingToLearnError: ..."),
    ("info", "tidewise: stage ingest done: {}"),
    ("info", "26/11/20 WARN Utils: WARNING of Spark"),
]


class NotedLines:
    """A logger that notes what it shows."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, str]] = []

    def __getattr__(self, level: str) -> Callable[[str], None]:
        return lambda line: self.shown.append((level, line))


class Hook:
    """What the hook of spark-submit does with the driver's output."""

    def __init__(self) -> None:
        self.log = NotedLines()

    def _process_spark_submit_log(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.log.info(line.strip())


def test_a_line_of_the_driver_is_shown_at_its_level_and_once() -> None:
    hook = Hook()
    show_levels(hook)
    hook._process_spark_submit_log(f"{line}\n" for _, line in LINES)
    assert hook.log.shown == LINES
