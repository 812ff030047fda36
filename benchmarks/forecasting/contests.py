"""What it changes that the methods of a forecast compete once a day and not every hour, on real traces.

``python -m benchmarks.forecasting.contests [--trace FILE ...]``

Passes every hour of the last dates of a trace, as the forecast stage makes them, both ways side by side, after a date
of hourly contests. The global model is fitted at every pass, on the trace alone. A long trace has several spans.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.arguments import readable_file
from benchmarks.forecasting.traces import DATA, pinball, read_trace, select_after
from cli.arguments import CommandParser
from include.utc import DAY_S, HOUR_S
from models.arrays import Floats
from models.forecasting import QUANTILES, Calendar, ForecastBatch, ForecastSettings, default_registry, forecast_batch
from models.forecasting.base import Registry
from models.forecasting.boosting import fit
from models.forecasting.rate_history import prepare

DATES, SPANS = 3, 5
SPAN_DAYS = 35
"""Distance of the ends of two spans of one trace."""


@dataclass(frozen=True, slots=True)
class PassPair:
    """One pass with a contest of its own, and the same one by the champion of its date.

    Attributes:
        is_other: whether the champions differ.
        differs_q50, differs_q90: mean absolute difference over the mean of the forecast.
        hourly_q50, daily_q50, hourly_q90, daily_q90: pinball losses, share of the mean rate.
        hourly_covers, daily_covers: share of bins at or below q90.
        is_judged_otherwise: whether one of them alone is a forecast to plan with.
    """

    is_other: float
    differs_q50: float
    differs_q90: float
    hourly_q50: float
    daily_q50: float
    hourly_q90: float
    daily_q90: float
    hourly_covers: float
    daily_covers: float
    is_judged_otherwise: float


def compare_passes(rates: Floats, calendar: Calendar, end: int, dates: int = DATES) -> Iterator[PassPair]:
    """Yield the pairs of every hour of the last whole UTC dates before a bin.

    Args:
        rates: of one trace, records/s, shape (T,), NaN for gaps.
        calendar: of its bins.
        end: bin after the last one that is looked at.
        dates: so many.
    """
    settings = ForecastSettings(calendar.day)
    last_s = (calendar.start_s + end * calendar.bin_s) // DAY_S * DAY_S
    first_s = last_s - dates * DAY_S
    hourly: list[str] | None = None
    daily: list[str] | None = None
    for at_s in range(first_s - DAY_S, last_s, HOUR_S):
        now = (at_s - calendar.start_s) // calendar.bin_s
        start = max(0, now - settings.history_days * calendar.day)
        known, own = rates[None, start:now], calendar.later(start)
        methods = _fit_methods(known, own, at_s, settings)
        each = forecast_batch(known, own, settings, methods=methods, previous_champions=hourly)
        hourly = each.method
        if at_s < first_s:
            daily = each.method
            continue
        once = forecast_batch(
            known, own, settings, methods=methods, previous_champions=daily, are_chosen=[at_s % DAY_S != 0]
        )
        daily = once.method
        yield _compare(each, once, select_after(rates, np.array([now]), calendar.day)[0], float(np.nanmean(rates)))


def _fit_methods(rates: Floats, calendar: Calendar, at_s: int, settings: ForecastSettings) -> Registry:
    history = prepare(rates, calendar)
    ends_s = (float(at_s - settings.backtest_origins * DAY_S), float(at_s))
    made = (fit([history], until_s, settings.horizon) for until_s in ends_s)
    return default_registry([one for one in made if one is not None])


def _compare(hourly: ForecastBatch, daily: ForecastBatch, came: Floats, mean: float) -> PassPair:
    q50, q90 = QUANTILES.index(0.5), QUANTILES.index(0.9)
    (a50, a90), (b50, b90) = (one.quantiles[[q50, q90], 0] for one in (hourly, daily))
    is_known = np.isfinite(came)
    return PassPair(
        is_other=hourly.method != daily.method,
        differs_q50=float(np.abs(a50 - b50).mean() / a50.mean()),
        differs_q90=float(np.abs(a90 - b90).mean() / a90.mean()),
        hourly_q50=pinball(came, a50, 0.5) / mean,
        daily_q50=pinball(came, b50, 0.5) / mean,
        hourly_q90=pinball(came, a90, 0.9) / mean,
        daily_q90=pinball(came, b90, 0.9) / mean,
        hourly_covers=float((came <= a90)[is_known].mean()),
        daily_covers=float((came <= b90)[is_known].mean()),
        is_judged_otherwise=(hourly.reason[0] is None) != (daily.reason[0] is None),
    )


def list_ends(bins: int, calendar: Calendar) -> list[int]:
    """Return the ends of the spans of a trace, the last first: each with four weeks of history before its dates."""
    back = SPAN_DAYS * calendar.day
    return [bins, *(end for end in range(bins - back, back, -back))][:SPANS]


def main(argv: Sequence[str] | None = None) -> int:
    """Compare on all traces and print a line for each, and for all."""
    parser = CommandParser(prog="forecasting.contests", description=__doc__.split("\n")[0])
    parser.add_argument("--trace", type=readable_file, nargs="+", default=sorted((DATA / "traces").glob("*.csv.gz")))
    chosen = parser.parse_args(argv)
    table = Table("trace", "passes", *(field.name for field in fields(PassPair)))
    every: list[PassPair] = []
    console = Console()
    with threadpool_limits(limits=1):
        for path in chosen.trace:
            name, rates, calendar = read_trace(path)
            with console.status(name):
                mine = [one for end in list_ends(len(rates), calendar) for one in compare_passes(rates, calendar, end)]
            table.add_row(name, *_average(mine))
            every += mine
    table.add_row("all", *_average(every))
    console.print(table)
    return 0


def _average(pairs: Sequence[PassPair]) -> list[str]:
    return [str(len(pairs)), *(f"{np.mean([getattr(one, f.name) for one in pairs]):.3%}" for f in fields(PassPair))]


if __name__ == "__main__":
    sys.exit(main())
