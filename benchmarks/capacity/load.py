"""Which windows tell a capacity that depends on load: rules compared on made operators of known saturation.

``python -m benchmarks.capacity.load [--page docs/models/tables.md]``

An operator runs two weeks at one parallelism, in windows of five minutes; its load has a daily course with a peak of 42
to 95% busy.  What one busy second does depends on the busy share b, beside noise of 1 to 5% and slow change; the truth
is that at b = 1.  Families, with constants drawn per operator:

| name | what a busy second does, as a share of saturation before scaling |
| --- | --- |
| constant | 1 |
| join: cost grows with load | 1 + K exp(-b / t), K 0.5 to 2.5, t 0.1 to 0.18 |
| window: fixed cost | 1 - a / b, a 0.02 to 0.14 |
| pre-aggregation: batches fill | 1 - K exp(-b / t), K 0.3 to 0.95, t 0.2 to 0.3 |

The constants are around those of a join that did 2,850/s at 6% busy and 1,100/s at 52%, and of a window that did 500/s
at 29% and 784/s at 71%.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from cli.arguments import CommandParser
from include.atomic_write import write_text
from models.arrays import Bools, Floats, Ints
from models.capacity.busy_windows import BUSY_ENOUGH, OF_BUSIEST, find_telling, light_load_sd
from tools.marked_page import put_between_marks

MARKS: Final = ("<!-- capacity_load: begin -->", "<!-- capacity_load: end -->")
FAMILIES: Final = ("constant", "join", "window", "pre-aggregation")
OPERATORS: Final = 64
DAYS: Final = 14
WINDOW_S: Final = 300
SEED: Final = 3
KEPT: Final = 5  # windows, as training.recent_per_parallelism
BEFORE: Final = 0.15  # training.min_busy_share, all that was asked of a window
WITHIN: Final = 0.1
MEASURED: Final = (
    ("join of q8", (0.06, 2850), (0.52, 1100), "1,094 to 1,200/s"),
    ("window of q5", (0.29, 500), (0.71, 784), "671 to 784/s"),
)
SHARES: Final = (0.06, 0.1, 0.15, 0.2, 0.3, 0.39, 0.45, 0.6)


@dataclass(frozen=True, slots=True)
class Course:
    """Windows of an operator whose saturation is 1: (n,) busy shares and capacities."""

    busy: Floats
    capacity: Floats


def draw_shape(family: str, draws: np.random.Generator) -> Callable[[Floats], Floats]:
    """Return an operator's capacity over its busy share, 1 at saturation."""

    def shape(busy: Floats) -> Floats:
        if family == "window":
            return np.maximum(1.0 - first / busy, 0.02)
        sign = {"constant": 0.0, "join": 1.0}.get(family, -1.0)
        return np.asarray(1.0 + sign * first * np.exp(-busy / second), float)

    ranges = {"window": ((0.02, 0.14), (1.0, 1.0)), "join": ((0.5, 2.5), (0.1, 0.18))}
    first, second = (draws.uniform(*span) for span in ranges.get(family, ((0.3, 0.95), (0.2, 0.3))))
    saturated = shape(np.ones(1))
    return lambda busy: np.asarray(shape(busy) / saturated, float)


def make_courses(family: str, operators: int, seed: int) -> Iterator[Course]:
    """Yield the windows of operators of a family."""
    draws = np.random.default_rng([seed, FAMILIES.index(family)])
    count = DAYS * 86_400 // WINDOW_S
    day = np.arange(count) * WINDOW_S / 86_400
    for _ in range(operators):
        peak = draws.uniform(0.42, 0.95)
        low = draws.uniform(0.15, 0.6) * peak
        course = low + (peak - low) * (0.5 - 0.5 * np.cos(2.0 * np.pi * day)) ** 1.5
        by_day = 1.0 + 0.08 * draws.standard_normal(DAYS)
        busy = np.clip(course * by_day[day.astype(int)] * (1.0 + 0.05 * draws.standard_normal(count)), 0.02, 1.0)
        noise = draws.uniform(0.01, 0.05)
        slow = np.repeat(draws.standard_normal(DAYS * 4), count // (DAYS * 4)) * 0.7 * noise
        capacity = draw_shape(family, draws)(busy) * np.exp(noise * draws.standard_normal(count) + slow)
        yield Course(busy, capacity)


def _mean_of_recent(course: Course, told: np.ndarray) -> float:
    return float(course.capacity[np.flatnonzero(told)[-KEPT:]].mean())


def _threshold(course: Course, enough: float, of_busiest: float) -> float:
    return _mean_of_recent(course, course.busy >= min(enough, of_busiest * float(course.busy.max())))


def find_busy_enough(point: Ints, time_s: Floats, busy: Floats, capacity_per_s: Floats) -> Bools:
    """Return (n,) which windows tell the capacity of their (operator, parallelism); arguments of find_telling."""
    return find_telling(point, time_s, busy, capacity_per_s)[0]


def _the_rule(course: Course) -> float:
    none = np.zeros(len(course.busy), np.int64)
    times = np.arange(len(none), dtype=np.float64) * WINDOW_S
    return _mean_of_recent(course, find_busy_enough(none, times, course.busy, course.capacity))


def _weighted(course: Course, power: float) -> float:
    recent = slice(-2 * 86_400 // WINDOW_S, None)
    busy, capacity = course.busy[recent], course.capacity[recent]
    weight = np.where(busy >= BEFORE, busy, 0.0) ** power
    return float((weight * capacity).sum() / weight.sum())


def _fixed_cost(course: Course, windows: int) -> float:
    """Fit capacity = C - g (1 / busy - 1) to windows above 40% busy, with a prior of 10% on g, and read it at 1."""
    reported = np.flatnonzero(course.busy >= min(0.4, 0.8 * float(course.busy.max())))[-windows:]
    away, observed = 1.0 / course.busy[reported] - 1.0, course.capacity[reported]
    scale = float(np.median(observed))
    columns = np.stack([np.ones(len(away)), away], axis=1)
    free = np.linalg.lstsq(columns, observed / scale, rcond=None)[0]
    noise = 3.0 * max(float(np.var(observed / scale - columns @ free)), 1e-4)
    result = np.linalg.solve(columns.T @ columns + np.diag([0.0, noise / 0.1**2]), columns.T @ (observed / scale))
    return float(result[0]) * scale


RULES: Final[Mapping[str, Callable[[Course], float]]] = {
    "recent windows above 15%": lambda course: _threshold(course, BEFORE, 1.0),
    "within 80% of the busiest, or above 40%": lambda course: _threshold(course, 0.4, 0.8),
    f"within {OF_BUSIEST:.0%} of the busiest, or above {BUSY_ENOUGH:.0%} (the rule)": _the_rule,
    "within 90% of the busiest": lambda course: _threshold(course, 1.0, 0.9),
    "all of two days, weighted by busy share squared": lambda course: _weighted(course, 2.0),
    "all of two days, weighted by its fourth power": lambda course: _weighted(course, 4.0),
    "fixed cost fitted to 20 windows": lambda course: _fixed_cost(course, 20),
    "fixed cost fitted to 288 windows": lambda course: _fixed_cost(course, 288),
}


def compare_rules() -> list[str]:
    """Return a table: mean error of each rule, and the share of operators within 10% of saturation."""
    courses = {family: list(make_courses(family, OPERATORS, SEED)) for family in FAMILIES}
    lines = [f"| rule | {' | '.join(FAMILIES)} |", "|---" * (1 + len(FAMILIES)) + "|"]
    for name, rule in RULES.items():
        errors = (np.abs(np.array([rule(one) for one in made]) - 1.0) for made in courses.values())
        cells = [f"{error.mean():.1%}, {(error < WITHIN).mean():.0%}" for error in errors]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def measure_doubt() -> list[str]:
    """Return a table: by what ln C is off at a busy share over all families, and s(b) of the models."""
    draws = np.random.default_rng(SEED)
    shares = np.array(SHARES)
    off = np.abs(np.concatenate([
        [np.log(draw_shape(family, draws)(shares)) for _ in range(400)] for family in FAMILIES
    ]))  # fmt: skip
    lines = ["| busy share | off in 80% | off in 95% | s(b) | 1.28 s(b) | 1.96 s(b) |", "|---|---|---|---|---|---|"]
    for share, most, nearly, sd in zip(
        shares, *np.quantile(off, (0.8, 0.95), axis=0), light_load_sd(shares), strict=True
    ):
        lines.append(f"| {share:.0%} | {most:.2f} | {nearly:.2f} | {sd:.2f} | {1.28 * sd:.2f} | {1.96 * sd:.2f} |")
    return lines


def extend_lines() -> list[str]:
    """Return a table of measured operators: what a line through two loads, rate over busy share, is at 100% busy."""
    lines = ["| operator | at light load | at high load | line at 100% busy | saturated |", "|---|---|---|---|---|"]
    for name, (light, light_per_s), (high, high_per_s), saturated in MEASURED:
        slope = (high * high_per_s - light * light_per_s) / (high - light)
        end = high * high_per_s + slope * (1.0 - high)
        lines.append(f"| {name} | {light_per_s:,}/s | {high_per_s:,}/s | {end:,.0f}/s | {saturated} |")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables, and write them between the marks of a page."""
    parser = CommandParser(prog="capacity_load", description=__doc__)
    parser.add_argument("--page", type=Path, help="a page between whose marks the tables go")
    chosen = parser.parse_args(argv)
    lines = ["Mean error against saturation, and operators within 10% of it.", "", *compare_rules(), ""]
    lines += ["By what ln C is off in the four families, and the standard deviation for it.", "", *measure_doubt(), ""]
    lines += [
        "Two measured operators of Nexmark's queries, with a fixed cost taken from two loads.",
        "",
        *extend_lines(),
    ]
    table = "\n".join(lines) + "\n"
    print(table)
    if chosen.page:
        write_text(chosen.page, put_between_marks(chosen.page.read_text(), MARKS, table.strip()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
