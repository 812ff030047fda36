"""Drawings of runs: the lines of all policies over each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from markupsafe import Markup

from benchmarks.live.results import RunResult
from page.charts import Area, Chart, Line

COLOURS: Mapping[str, str] = {
    "tidewise": "#12715b",
    "controller_alone": "#5ab39c",
    "flink_autoscaler": "#c2571a",
    "flink_autoscaler_tuned": "#e0a12e",
    "ds2": "#3a6ea5",
    "conttune": "#8d5fa8",
    "none": "#8a93a0",
    "constant": "#4a5361",
}
_AGE_MOST_S = 180.0


def draw_slots(runs: Sequence[RunResult]) -> Markup:
    """Return the slots of each run as a line over the load, which is an area."""
    top = 1.08 * max(line[2] for run in runs for line in run.lines)
    loads = [(line[0], line[1]) for line in runs[0].lines]
    scale = top / (1.08 * max(rate for _, rate in loads))
    spans = [(since, until, 0.0, scale * rate) for (since, rate), (until, _) in pairwise(loads)]
    lines = [Line(run.policy, run.policy, [(one[0], one[2]) for one in run.lines], is_steps=True) for run in runs]
    return _draw(runs, "slots of each policy over the load", lines, top, [Area("", "load", spans)])


def draw_ages(runs: Sequence[RunResult], late_after_s: float) -> Markup:
    """Return the age of the oldest record of each run as a line, cut off at three minutes; dashed: late."""
    limit = Line("", "late", [(0.0, late_after_s), (_find_length(runs), late_after_s)])
    lines = [Line(run.policy, run.policy, [(one[0], one[3]) for one in run.lines]) for run in runs]
    return _draw(runs, "age of the oldest record under each policy", [limit, *lines], _AGE_MOST_S, ())


def _find_length(runs: Sequence[RunResult]) -> float:
    return max(run.span_s[1] - run.span_s[0] for run in runs)


def _draw(
    runs: Sequence[RunResult], alternative: str, lines: Sequence[Line], top: float, areas: Sequence[Area]
) -> Markup:
    lost = [run.lost_at_s for run in runs if run.lost_at_s is not None][:1]
    return Chart("", 0.0, _find_length(runs), -1.0, lines, areas, lost, top=top, alternative=alternative).draw()
