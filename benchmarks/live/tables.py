"""Tables of results as Markdown, and what they say against Tidewise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from benchmarks.live.policies import POLICIES, TIDEWISE
from benchmarks.live.results import RunResult
from benchmarks.live.simulator import REPORTS, Comparison

FIGURES: tuple[tuple[str, Callable[[RunResult], float], str], ...] = (
    ("cost", lambda one: one.measures.cost, "{:.2f}"),
    ("late minutes", lambda one: one.measures.late_minutes, "{:.1f}"),
    ("slot-hours", lambda one: one.measures.slot_hours, "{:.2f}"),
    ("rescales", lambda one: float(one.measures.rescales), "{:.0f}"),
)
"""What runs are compared by: name, value, and how it is shown."""
HEAD = (
    "| job | policy | seed | cost | late minutes | slot-hours | rescales | down, s | peak backlog | worked off in, s "
    "| recovered in, s | records lost | processors | |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def sort_results(results: Iterable[RunResult]) -> list[RunResult]:
    """Return results by job and seed, each time in the order of the policies."""
    order = list(POLICIES)
    return sorted(results, key=lambda one: (one.job, one.seed, order.index(one.policy)))


def format_row(one: RunResult) -> list[str]:
    """Return the cells of a result, with a mark where it is no measurement."""
    figures = one.measures
    mark = one.trouble or ("" if one.is_valid else "invalid: processors busy")
    return [
        one.job,
        one.policy,
        str(one.seed),
        f"{figures.cost:.2f}",
        f"{figures.late_minutes:.1f}",
        f"{figures.slot_hours:.2f}",
        str(figures.rescales),
        f"{figures.down_s:.0f}",
        f"{figures.peak_backlog:.0f}",
        format_seconds(figures.worked_off_s),
        format_seconds(figures.recovery_s) if one.lost_at_s is not None else "",
        "not known" if one.records_lost is None else str(one.records_lost),
        f"{one.cpu_share:.0%}",
        mark,
    ]


def format_seconds(value: float | None) -> str:
    """Return seconds, or that it did not come to it within the run."""
    return "not in the run" if value is None else f"{value:.0f}"


def format_table(results: Iterable[RunResult]) -> str:
    """Return all results as a table."""
    return "\n".join([HEAD, *(f"| {' | '.join(format_row(one))} |" for one in sort_results(results))])


def list_against(results: Iterable[RunResult]) -> list[str]:
    """Return sentences: where another policy was better than Tidewise on the same job and load."""
    ordered = sort_results(results)
    sentences = []
    for own in ordered:
        if own.policy != TIDEWISE:
            continue
        for other in ordered:
            if (other.job, other.seed, other.minutes) != (own.job, own.seed, own.minutes) or other is own:
                continue
            better = [
                f"{name} {form.format(read(other))}, Tidewise {form.format(read(own))}"
                for name, read, form in FIGURES
                if read(other) < read(own)
            ]
            if better:
                marks = [f"{one.policy} is no measurement" for one in (own, other) if not one.is_valid]
                end = f" ({'; '.join(marks)})" if marks else ""
                sentences.append(f"{own.job}, seed {own.seed}: {other.policy} has less: {'; '.join(better)}{end}.")
    return sentences


def format_comparisons(rows: Sequence[Comparison]) -> str:
    """Return the simulator beside the real cluster as a table."""
    lines = [
        "| job | policy | seed | cost | cost, simulated | off by | recovery, s | simulated, s | off by | use |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        lines.append(
            f"| {one.job} | {one.policy} | {one.seed} | {one.cost:.2f} | {one.simulated_cost:.2f} "
            f"| {format_error(one.simulated_cost, one.cost)} | {format_seconds(one.recovery_s)} "
            f"| {format_seconds(one.simulated_recovery_s)} "
            f"| {format_error(one.simulated_recovery_s, one.recovery_s)} | {one.use} |"
        )
    return "\n".join(lines)


def describe_error(rows: Sequence[Comparison]) -> str:
    """Return by how much the simulated cost was off, as a sentence; of runs that corrected nothing where there are."""
    chosen = [one for one in rows if one.use == REPORTS] or list(rows)
    errors = [one.simulated_cost / one.cost - 1 for one in chosen]
    jobs = ", ".join(dict.fromkeys(one.job for one in chosen))
    by = "which did not correct it" if chosen[0].use == REPORTS else "which also corrected it"
    return (
        f"The simulator's error: given the load, rescales and loss of {len(chosen)} live runs of {jobs}, {by}, its "
        f"cost was off by {_percent(min(errors))} to {_percent(max(errors))}, on the median by "
        f"{_percent(median(errors))}."
    )


def format_error(simulated: float | None, real: float | None) -> str:
    """Return by how much a simulated figure is off."""
    return "-" if simulated is None or not real else _percent(simulated / real - 1)


def _percent(share: float) -> str:
    return f"{round(share, 2) + 0.0:+.0%}"  # what rounds to zero has no minus
