"""Exports of other tools: read as the plain table of the same numbers, or refused in one line by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.replay.replay_traces import ColumnChoice, TraceError, read_trace

START = datetime(2026, 1, 12, tzinfo=UTC)
AT = [START + timedelta(minutes=5 * n) for n in range(3 * 288)]
RATES = np.round(1000.0 + 800.0 * np.sin(np.arange(len(AT)) * 2 * np.pi / 288), 1)
TIMES = [f"{one:%Y-%m-%d %H:%M:%S}" for one in AT]


def shorten(rate: float) -> str:
    return f"{rate / 1000:.4f} K" if rate >= 1000 else f"{rate}"


def german(rate: float) -> str:
    return f"{rate:,.1f}".replace(",", " ").replace(".", ",").replace(" ", ".")


def table(cell: Callable[[float], str], separator: str = ",", quote: str = '"') -> str:
    rows = [f"{at}{separator}{quote}{cell(rate)}{quote}" for at, rate in zip(TIMES, RATES, strict=True)]
    return "\n".join([f"Time{separator}orders", *rows, ""])


@pytest.mark.parametrize(
    "text",
    [
        table(shorten),
        table(lambda rate: f"{rate / 1e6:.7f} Mil"),
        table(lambda rate: f"{rate:,.1f}"),
        table(german, ";", ""),
        table(lambda rate: f"{rate}".replace(".", ","), ";"),
        table(str, "\t", ""),
        table(str).replace(TIMES[5], TIMES[5], 1),
        "\n".join(["time,orders", *(f"{at.timestamp():.0f},{r}" for at, r in zip(AT[::-1], RATES[::-1], strict=True))]),
    ],
    ids=["K", "Mil", "thousands", "semicolons", "decimal commas", "tabs", "plain", "newest first"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_a_format_is_read_as_the_numbers_that_it_shows(tmp_path: Path, text: str, encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    (tmp_path / "t.csv").write_bytes((mark + text).encode(encoding))
    np.testing.assert_allclose(read_trace(tmp_path / "t.csv").values, RATES, rtol=1e-6)


QUERY_RANGE = {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[1, "2"]]}]}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            table(lambda rate: f"{rate} req/s"),
            r"864 of 864 cells of orders cannot be read, '1000.0 req/s' is the first",
        ),
        (
            table(lambda rate: f"{rate / 1000:.2f} kB/s" if rate > 1000 else f"{rate}"),
            r"of orders cannot be read, '1.0",
        ),
        (table(lambda rate: f"{rate / 1000:.3f}".replace(".", ",")), r"cells of orders cannot be read, '0,"),
        (table(lambda rate: "~" if rate > 1750 else f"{rate}"), r"of orders cannot be read, '~' is the first"),
        (json.dumps({**QUERY_RANGE, "warnings": ["a store is gone"]}), r"an answer of Prometheus that is not whole"),
        (json.dumps({**QUERY_RANGE, "isPartial": True}), r"an answer of Prometheus that is not whole"),
        (json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}), r"with a vector, not of"),
        (json.dumps([QUERY_RANGE] * 5000), r"it is JSON of neither Prometheus' query_range nor CloudWatch's"),
        (json.dumps({"Label": "orders", "Datapoints": [{"Average": 3.0}]}), r"it is JSON of neither Prometheus'"),
        (json.dumps({"MetricDataResults": [{"Timestamps": [], "Values": []}] * 2}), r"JSON with 2 series; export the"),
        (json.dumps({"MetricDataResults": [], "NextToken": "x"}), r"an answer of CloudWatch that is not whole"),
        (json.dumps({"MetricDataResults": [{"StatusCode": "PartialData"}]}), r"CloudWatch that is not whole"),
        (json.dumps({"MetricDataResults": [{"Timestamps": [1], "Values": []}]}), r"zip"),
        (json.dumps(QUERY_RANGE)[:-3], r"it is JSON that cannot be read"),
        ("[" * 100_000, r"it is JSON that cannot be read"),
        (table(lambda rate: f"{9e8 + 300 * float(np.cumsum(RATES)[np.searchsorted(RATES, rate)])}"), None),
    ],
    ids=[
        *(
            "a unit of one's own",
            "bytes",
            "decimal commas between commas",
            "a sign",
            "warnings",
            "isPartial",
            "a vector",
        ),
        *(
            "many",
            "get-metric-statistics",
            "two series",
            "NextToken",
            "PartialData",
            "uneven",
            "cut",
            "deep",
            "shuffled",
        ),
    ],
)
def test_what_is_not_read_is_named_in_one_line(tmp_path: Path, text: str, says: str | None) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    if says is None:  # numbers in no order are no counter
        assert read_trace(tmp_path / "t.csv").values.max() > 9e8
        return
    with pytest.raises(TraceError, match=says) as caught:
        read_trace(tmp_path / "t.csv")
    assert len(str(caught.value).replace(str(tmp_path), "")) < 250


def of_prometheus() -> dict[str, object]:
    values = [[at.timestamp(), f"{rate}"] for at, rate in zip(AT, RATES, strict=True)]
    return {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {"a": "b"}, "values": values}]}}


def of_cloudwatch(at: list[datetime], rates: list[float], **more: object) -> dict[str, object]:
    times = [f"{one:%Y-%m-%dT%H:%M:%S+00:00}" for one in at]
    return {"MetricDataResults": [{"Id": "m1", "Label": "orders", "Timestamps": times, "Values": rates, **more}]}


@pytest.mark.parametrize(
    "answer",
    [
        of_prometheus(),
        of_cloudwatch(AT, RATES.tolist(), StatusCode="Complete"),
        of_cloudwatch(AT[::-1], RATES[::-1].tolist()),
    ],
    ids=["query_range", "get-metric-data", "newest first"],
)
def test_the_series_of_an_answer_is_read(tmp_path: Path, answer: dict[str, object]) -> None:
    (tmp_path / "t.json").write_text(json.dumps(answer), encoding="utf-8")
    np.testing.assert_allclose(read_trace(tmp_path / "t.json").values, RATES, rtol=1e-9)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_counter_is_no_rate_unless_a_person_says_so(tmp_path: Path, is_reversed: bool) -> None:
    counted = 9e8 + 300 * np.cumsum(RATES)
    counted[500:] -= counted[500] - 12.0  # the job began anew
    rows = [f"{at},{value}" for at, value in zip(TIMES, counted, strict=True)]
    lines = rows[::-1] if is_reversed else rows
    (tmp_path / "t.csv").write_text("\n".join(["Time,orders", *lines]), encoding="utf-8")
    with pytest.raises(TraceError, match="orders only rises, as a counter does; export its rate"):
        read_trace(tmp_path / "t.csv")
    assert read_trace(tmp_path / "t.csv", ColumnChoice(rate="orders")).values.max() > 9e8


def test_bytes_that_are_no_text_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(table(str).encode("utf-16-le"))
    with pytest.raises(TraceError):
        read_trace(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_bytes(b"Time,orders\n2026-01-12,\xff\xfe\n")
    with pytest.raises(TraceError, match="UTF-8 is read, and UTF-16 with a byte order mark"):
        read_trace(tmp_path / "t.csv")
