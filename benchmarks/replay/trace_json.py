"""The one series of a JSON export: Prometheus' answer to query_range, or CloudWatch's to get-metric-data."""

from __future__ import annotations

import json
from typing import Any

Series = list[tuple[Any, Any]]
"""Time and value of each sample, as they are written."""


def read_series(text: str) -> tuple[str, Series]:
    """Return the name of the times' column and the samples.

    Raises:
        ValueError: it is no such answer, not the whole of one, or has another number of series than one.
    """
    try:
        answer = json.loads(text)
        if isinstance(answer, dict) and "data" in answer:
            name, series = "time_s", _of_prometheus(answer)
        elif isinstance(answer, dict) and "MetricDataResults" in answer:
            name, series = "time", _of_cloudwatch(answer)
        else:
            raise ValueError("it is JSON of neither Prometheus' query_range nor CloudWatch's get-metric-data")
    except (KeyError, TypeError, AttributeError, RecursionError, json.JSONDecodeError) as error:
        raise ValueError(f"it is JSON that cannot be read ({type(error).__name__}: {error})") from error
    if len(series) != 1:
        raise ValueError(f"it is JSON with {len(series)} series; export the one that is meant")
    return name, series[0]


def _of_prometheus(answer: dict[str, Any]) -> list[Series]:
    if answer.get("status") != "success" or answer.get("warnings") or answer.get("isPartial"):
        raise ValueError("it is an answer of Prometheus that is not whole: see its status, warnings or isPartial")
    if answer["data"]["resultType"] != "matrix":
        raise ValueError(f"it is JSON of Prometheus with a {answer['data']['resultType']}, not of query_range")
    return [[(at, value) for at, value in one["values"]] for one in answer["data"]["result"]]


def _of_cloudwatch(answer: dict[str, Any]) -> list[Series]:
    results = answer["MetricDataResults"]
    if answer.get("NextToken") or any(one.get("StatusCode", "Complete") != "Complete" for one in results):
        raise ValueError("it is an answer of CloudWatch that is not whole: see its StatusCode and NextToken")
    return [list(zip(one["Timestamps"], one["Values"], strict=True)) for one in results]
