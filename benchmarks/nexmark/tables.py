"""The tables of ``docs/nexmark/tables.md``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from benchmarks.nexmark.experiment import BUSY_ENOUGH, RIVALS, STEPS, TIDEWISE, JobTrial, Truth
from include.settings import PROJECT
from lab.local_flink.nexmark import QUERIES

_PUBLISHED = PROJECT / "data" / "papers"
_TOLERANCE = {"rates": 0.05, "capacities": 0.10}
_RATES_HEAD = """### Rates

Records/s into each vertex by the job's own counters and as Tidewise measured them, means over the same settled windows
of all jobs of a query; the first row of a query is the source, whose truth is the trace. A rate is right within 5%.

| query | vertex | load, units | truth/s | measured/s | error |
|---|---|---|---|---|---|"""
_CAPACITIES_HEAD = """### Capacities

Records/s into the vertex that limits the job: the truth by more load than it can process, and the median of Tidewise's
windows in which it was above 40% busy. Right within 10%.

| query | vertex | subtasks | truth/s | measured/s | windows | error |
|---|---|---|---|---|---|---|"""
_WANTED_HEAD = """### Parallelism wanted

Of the vertex that limits the job, by load step: the changes that each policy made, in order, `-` for none. Least is the
fewest subtasks that sustain the load, with the share of their capacity that it uses. Late is the backlog at the end of
a step, in seconds of the load.

| query | policy | wanted, by step | at the end of each step | least | late at the ends, s |
|---|---|---|---|---|---|"""
_STEPS_HEAD = """### Steps to a new load

Changes of the limiting vertex after each change of the load, mean of both; beside it the mean number of
reconfigurations that ContTune's paper publishes for its own cluster and loads (its Table 4a). DS2's paper publishes
that {ds2}.

| query | tidewise | DS2 | DS2, published | ContTune | ContTune, published | Flink autoscaler's rules |
|---|---|---|---|---|---|---|"""


def print_tables(truths: Mapping[str, Truth], trials: Mapping[str, Mapping[str, JobTrial]]) -> str:
    """Return all tables."""
    parts = [_rates(truths, trials), _capacities(truths, trials), _wanted(truths, trials), _steps(trials)]
    return "\n\n".join(parts)


def judge(truths: Mapping[str, Truth], trials: Mapping[str, Mapping[str, JobTrial]]) -> list[str]:
    """Return a sentence for each figure that is not within its tolerance, and each size above the least at the end."""
    wrong = [
        f"{query}: rate of `{vertex}` at {load:g} units is {_percent(error)} off"
        for query, vertex, load, _, _, error in _rate_rows(truths, trials)
        if not abs(error) <= _TOLERANCE["rates"]
    ]
    wrong += [
        f"{query}: capacity of {count} `{vertex}` is {_percent(error)} off"
        for query, vertex, count, _, _, _, error in _capacity_rows(truths, trials)
        if not abs(error) <= _TOLERANCE["capacities"]
    ]
    for query, jobs in trials.items():
        for (load, _), end in zip(STEPS, jobs[TIDEWISE].ends, strict=True):
            least = truths[query].least(load)
            if least is not None and end != least:
                use = f"the least is {least}, which it uses to {truths[query].used(load):.0%}"
                wrong.append(f"{query}: Tidewise ends the step of {load:g} units at {end}; {use}")
    return wrong


def _rate_rows(
    truths: Mapping[str, Truth], trials: Mapping[str, Mapping[str, JobTrial]]
) -> list[tuple[str, str, float, float, float, float]]:
    """Return query, vertex, load, truth, measured, relative error; means over the settled windows of all jobs."""
    rows = []
    for query, jobs in trials.items():
        truth, unit = truths[query], QUERIES[query].unit_per_s
        for load in sorted({times for times, _ in STEPS}):
            steps = {number for number, (times, _) in enumerate(STEPS) if times == load}
            arrivals = [rate for job in jobs.values() for step, rate in job.arrivals if step in steps]
            rows.append(_rate_row(query, "source, arrivals", load, load * unit, arrivals))
            for vertex, name in truth.names.items():
                if name.startswith("Source"):
                    continue
                both = [
                    (measured, counted)
                    for job in jobs.values()
                    for step, one, measured, counted in job.rates
                    if step in steps and one == vertex and math.isfinite(measured)
                ]
                counted = fmean(one for _, one in both) if both else math.nan
                rows.append(_rate_row(query, shorten(name), load, counted, [one for one, _ in both]))
    return rows


def _rate_row(
    query: str, name: str, load: float, truth: float, result: Sequence[float]
) -> tuple[str, str, float, float, float, float]:
    known = [one for one in result if math.isfinite(one)]
    measured = fmean(known) if known else float("nan")
    return query, name, load, truth, measured, (measured - truth) / truth if truth else measured - truth


def _rates(truths: Mapping[str, Truth], trials: Mapping[str, Mapping[str, JobTrial]]) -> str:
    rows = [
        f"| {query} | {vertex} | {load:g} | {_figure(truth)} | {_figure(measured)} | {_percent(error)} |"
        for query, vertex, load, truth, measured, error in _rate_rows(truths, trials)
    ]
    return "\n".join([_RATES_HEAD, *rows])


def _capacity_rows(
    truths: Mapping[str, Truth], trials: Mapping[str, Mapping[str, JobTrial]]
) -> list[tuple[str, str, int, float, float, int, float]]:
    rows = []
    for query, jobs in trials.items():
        truth = truths[query]
        result = [
            one for job in jobs.values() for one in job.capacities if one[1] > BUSY_ENOUGH and math.isfinite(one[2])
        ]
        for count in sorted({one[0] for one in result} & set(truth.capacity_per_s)):
            if truth.saturated[count]:
                known = [rate for running, _, rate in result if running == count]
                right, measured = truth.capacity_per_s[count], median(known)
                name = shorten(truth.names[truth.costly])
                rows.append((query, name, count, right, measured, len(known), (measured - right) / right))
    return rows


def _capacities(truths: Mapping[str, Truth], trials: Mapping[str, Mapping[str, JobTrial]]) -> str:
    rows = [
        f"| {query} | {vertex} | {count} | {_figure(truth)} | {_figure(result)} | {windows} | {_percent(error)} |"
        for query, vertex, count, truth, result, windows, error in _capacity_rows(truths, trials)
    ]
    return "\n".join([_CAPACITIES_HEAD, *rows])


def _wanted(truths: Mapping[str, Truth], trials: Mapping[str, Mapping[str, JobTrial]]) -> str:
    lines = [_WANTED_HEAD]
    for query, jobs in trials.items():
        least = ", ".join(_least(truths[query], load) for load, _ in STEPS)
        for policy, job in jobs.items():
            changes = list(_changes(job))
            paths = "; ".join(
                ", ".join(str(to) for step, to in changes if step == number) or "-" for number in range(len(STEPS))
            )
            late = ", ".join(
                f"{pending / (load * QUERIES[query].unit_per_s):.0f}" if math.isfinite(pending) else "?"
                for (load, _), pending in zip(STEPS, job.pending, strict=True)
            )
            ends = ", ".join(map(str, job.ends))
            lines.append(f"| {query} | {policy} | {paths} | {ends} | {least} | {late} |")
        if advised := jobs[TIDEWISE].advised:
            paths = "; ".join(
                ", ".join(str(to) for step, to in advised if step == number) or "-" for number in range(len(STEPS))
            )
            lines.append(f"| {query} | its own process, on Tidewise's job | {paths} | | {least} | |")
    return "\n".join(lines)


def _changes(job: JobTrial) -> list[tuple[int, int]]:
    """Return (step, parallelism) of the changes that changed the limiting vertex."""
    before, result = 1, []
    for step, to, _ in job.wanted:
        if to != before:
            result.append((step, to))
        before = to
    return result


def _steps(trials: Mapping[str, Mapping[str, JobTrial]]) -> str:
    conttune = json.loads((_PUBLISHED / "conttune.json").read_text())["table4a_avg_reconfigurations"]
    runs = json.loads((_PUBLISHED / "ds2.json").read_text())["runs_by_steps"]
    reported = ", ".join(f"{count} runs took {steps} steps" for steps, count in runs.items())
    lines = [_STEPS_HEAD.replace("{ds2}", reported)]
    for query, jobs in trials.items():
        own = {policy: _mean_changes(job) for policy, job in jobs.items()}
        published = [_mean(conttune[one].get(query.upper())) for one in ("DS2", "ContTune_a3")]
        cells = [own[TIDEWISE], own["ds2"], published[0], own["conttune"], published[1], own["autoscaler"]]
        lines.append(f"| {query} | {' | '.join(cells)} |")
    assert set(RIVALS) == {"ds2", "conttune", "autoscaler"}
    return "\n".join(lines)


def _mean_changes(job: JobTrial) -> str:
    counts = [sum(step == number for step, _ in _changes(job)) for number in range(1, len(STEPS))]
    return f"{fmean(counts):.1f}"


def _mean(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _least(truth: Truth, load: float) -> str:
    least = truth.least(load)
    return "?" if least is None else f"{least} ({truth.used(load):.0%})"


def _figure(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:+.1f}%"


def shorten(name: str) -> str:
    """Return the first operator of a vertex's name without its number, which the JobManager counts up."""
    return name.partition(" -> ")[0].partition("[")[0].removesuffix(": Writer")
