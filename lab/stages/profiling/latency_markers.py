"""End-to-end latency from Flink's latency markers, as the REST API shows them.

With ``metrics.latency.interval`` set, sources send markers through the job, and every operator keeps quantiles of the
time that they took; Flink lists them among the metrics of the operator's vertex, named
``latency.[source_id.<id>.]operator_id.<id>.operator_subtask_index.<n>.latency_p95``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

_P95 = re.compile(r"latency\.(?:.+\.)?operator_id\.([0-9a-f]{32})\.operator_subtask_index\.\d+\.latency_p95")
# Flink's REST server takes no request line above 4,096 bytes, and such a name has some 150.
NAMES_AT_ONCE = 20
MOST_NAMES = 400


def find_p95_names(names: Iterable[str]) -> list[list[str]]:
    """Return the names of 95th percentiles among a vertex's metrics, in lists of one request each; at most 400."""
    result = sorted(name for name in names if _P95.fullmatch(name))[:MOST_NAMES]
    return [result[at : at + NAMES_AT_ONCE] for at in range(0, len(result), NAMES_AT_ONCE)]


def mean_of_slowest_ms(values: Mapping[str, str]) -> float:
    """Return the mean over its subtasks of the operator that markers reach last, ms; NaN without any.

    Deviation: Phoebe's prototype takes the mean over all operators, so that a job with many early ones looks quick.

    Args:
        values: name -> value as text; what is no number is left out.
    """
    of_operator: dict[str, list[float]] = {}
    for name, text in values.items():
        result = _P95.fullmatch(name)
        value = _number(text)
        if result and math.isfinite(value) and value >= 0:
            of_operator.setdefault(result.group(1), []).append(value)
    return max((sum(each) / len(each) for each in of_operator.values()), default=math.nan)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
