"""What an asset's event says of the stage that wrote it: from when, how much, and what was not used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from include.orchestration.assets import application_outlets
from include.stage_request import StageRequest

_COUNTS = (
    *("rows", "quarantined", "quarantined_values", "quarantined_files", "late", "observations", "missing_windows"),
    *("models", "gate", "champion", "model_version", "not_in_use", "jobs_kept", "jobs_left_out"),
    *("forecasts", "fallbacks", "stale", "unusable", "contests", "jobs", "steps", "held", "refused", "over_budget"),
    *("learned", "profiled", "compared", "seconds"),
)


def form_facts(request: StageRequest, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the extra of an asset's event: plain values that JSON holds, none where nothing is known."""
    times = {"as_of": request.as_of, "start": request.start, "end": request.end}
    known = {name: at.isoformat().replace("+00:00", "Z") for name, at in times.items() if at is not None}
    counts = {name: summary[name] for name in _COUNTS if isinstance(summary.get(name), int | float | str | bool)}
    return {"stage": str(request.stage), **known, **counts}


def add_facts(
    context: Mapping[str, Any], requests: Sequence[StageRequest], summaries: Mapping[str, Mapping[str, Any]]
) -> None:
    """Put the facts of each stage that has ended into the events of what it writes."""
    events = context.get("outlet_events")
    if events is None:
        return
    for request in requests:
        summary = summaries.get(str(request.stage))
        if summary is not None:
            for asset in application_outlets([request.stage]):
                events[asset].extra = form_facts(request, summary)
