"""What a stage that ended well should not keep to itself: broken input, and nothing done."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable

import pytest

from include.orchestration.stage_lines import show_levels
from include.stage_warnings import is_empty, list_warnings

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
        ("plan", {"jobs": 9, "refused": 2}, ["jobs without a plan: 2"]),
        ("plan", {"jobs": 9, "refused": 0}, []),
        ("train", {"gate": "passed"}, []),
        ("train", {"gate": "failed"}, ["the new models are not in use"]),
        ("forecast", {"forecasts": 0}, ["nothing was forecast"]),
        ("forecast", {"forecasts": 4, "stale": 1}, ["1 sources have no rate of late"]),
        ("report", {"shown": 0}, []),
        ("plan", {"jobs": 9, "models_lost": "version 2 cannot be used"}, ["models are lost, and older ones in use: v"]),
        ("train", {"gate": "passed", "models_lost": "version 2 cannot be used"}, ["models are lost"]),
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

    def __init__(self, *, tracks: bool = False) -> None:
        self.log = NotedLines()
        self._is_yarn, self._is_kubernetes, self._should_track_driver_status = tracks, False, False

    def _process_spark_submit_log(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.log.info(line.strip())


def test_a_line_of_the_driver_is_shown_at_its_level_and_once() -> None:
    hook = Hook()
    show_levels(hook)
    hook._process_spark_submit_log(f"{line}\n" for _, line in LINES)
    assert hook.log.shown == LINES


OF_SPARK = [
    "26/11/20 19:05:01 WARN NativeCodeLoader: Unable to load native-hadoop library",
    "java.io.IOException: gone",  # what follows a line of Spark is shown unless it is plainly of a trace
    "26/11/20 19:05:02 WARN TaskSetManager: Lost task 0.0",
    "\tat org.apache.spark.Task.run(Task.scala:1)",
    "Caused by: java.lang.Exception",
    "26/11/20 19:05:03 ERROR Executor: Exception in task",
    'Setting default log level to "WARN".',
    "Traceback (most recent call last):",
]
ASIDE = (0, 2, 3, 4, 6)


@pytest.mark.parametrize("tracks", [False, True])
def test_lines_of_spark_are_set_aside_but_its_errors_and_where_airflow_reads_them(tracks: bool) -> None:
    hook, file = Hook(tracks=tracks), io.StringIO()
    show_levels(hook, {}, file)
    hook._process_spark_submit_log(f"{line}\n" for line in OF_SPARK)
    aside = [] if tracks else [OF_SPARK[index] for index in ASIDE]
    assert file.getvalue().splitlines() == aside
    assert [line for _, line in hook.log.shown] == [line.strip() for line in OF_SPARK if line not in aside]


def test_the_counts_of_stages_are_read_from_what_the_driver_prints() -> None:
    hook, summaries = Hook(), {}
    show_levels(hook, summaries)
    lines = ['tidewise: stage ingest done: {"rows": 0, "quarantined": 0}', "tidewise: stage plan done: {broken"]
    hook._process_spark_submit_log(f"{line}\n" for line in lines)
    assert summaries == {"ingest": {"rows": 0, "quarantined": 0}}
    assert [stage for stage in summaries if is_empty(stage, summaries[stage])] == ["ingest"]
