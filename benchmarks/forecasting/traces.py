"""Forecasts against what came: coverage and pinball loss on real traces, and against published forecasts.

``python -m benchmarks.forecasting.traces [--trace FILE ...] [--published FILE] [--json OUT] [--plot OUT.png]``

Every hour of the last third of a trace is an origin; a forecast knows what came before its origin and nothing else.
The seasonal naives get quantiles in the same way, from their own past errors.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.arguments import readable_file
from cli.arguments import CommandParser, UsageError, require_writable_file
from include.atomic_write import write_text
from include.settings import PROJECT
from include.utc import DAY_S, HOUR_S
from lab.replay.rolling import roll
from models.arrays import Floats, Ints
from models.forecasting import QUANTILES, Calendar, ForecastSettings
from models.forecasting.base import Registry, registry
from models.forecasting.harmonic import HarmonicRidge
from models.forecasting.seasonal_naive import SeasonalNaive
from models.forecasting.weekday_profile import WeekdayProfile

DATA = PROJECT / "data"
PUBLISHED = DATA / "forecasts" / "taxi_15min_published.csv.gz"
PUBLISHED_TRACE = "dsp_taxi_5min"
OURS = "tidewise"
PUBLISHED_STEPS = 4
"""A published value is the mean of the forecasts made one to four steps before (see data/forecasts/README.md)."""
LEAD_GROUPS_H = ((0, 1), (1, 3), (3, 6), (6, 12), (12, 18), (18, 24))
CANDIDATES: Mapping[str, Registry | None] = {
    OURS: None,
    "naive_day": registry([SeasonalNaive(weekly_after_days=np.inf)]),
    "naive_week": registry([SeasonalNaive()]),
    "harmonic_ridge": registry([HarmonicRidge()]),
    "weekday_profile": registry([WeekdayProfile()]),
}


@dataclass(frozen=True, slots=True)
class Score:
    """How a method did on the last third of a trace; losses in per cent of the mean rate.

    Attributes:
        trace, method: which.
        coverage_q90, coverage_q95, coverage_q10: share of bins at or below the quantile.
        coverage_q90_by_lead: the same by group of leads in hours.
        pinball_q50, pinball_q90: mean pinball loss.
    """

    trace: str
    method: str
    coverage_q90: float
    coverage_q95: float
    coverage_q10: float
    coverage_q90_by_lead: dict[str, float]
    pinball_q50: float
    pinball_q90: float


def read_trace(path: Path) -> tuple[str, Floats, Calendar]:
    """Read a CSV of a time and a rate column; returns name, rates (T,) with NaN in gaps, and bins.

    Raises:
        ValueError: the shortest step does not divide a day.
    """
    table = pd.read_csv(path)
    at_s = seconds(table.iloc[:, 0])
    bin_s = int(np.diff(at_s).min())
    place = (at_s - at_s[0]) // bin_s
    rates = np.full(int(place[-1]) + 1, np.nan)
    rates[place] = table.iloc[:, 1].to_numpy(float)
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    return name, rates, Calendar(int(at_s[0]), bin_s)


def seconds(times: pd.Series) -> Ints:
    """Return times as seconds since 1970; those without a zone are UTC."""
    return np.asarray(pd.to_datetime(times, utc=True).dt.as_unit("s").astype("int64"), np.int64)


def select_after(rates: Floats, origins: Ints, horizon: int) -> Floats:
    """Return what came, shape (O, horizon), NaN after the end of the trace."""
    later = np.append(rates, np.full(horizon, np.nan))
    return np.asarray(later[origins[:, None] + np.arange(horizon)])


def pinball(seen: Floats, quantile: Floats, level: float) -> float:
    """Return the mean pinball loss where something was seen."""
    above = seen - quantile
    return float(np.nanmean(np.maximum(level * above, (level - 1) * above)))


def score(
    name: str, method: str, rates: Floats, calendar: Calendar, quantiles: Floats, *, origins: Ints | None = None
) -> Score:
    """Score forecasts, quantiles (O, L, H), from some origins; without them, those of the last third."""
    origins = last_third(rates, calendar) if origins is None else origins
    observed = select_after(rates, origins, quantiles.shape[2])
    known = np.isfinite(observed)
    lead_h = np.arange(quantiles.shape[2]) * calendar.bin_s / HOUR_S
    mean = float(np.nanmean(rates))

    def measure_coverage(level: float, low_h: float = 0, high_h: float = np.inf) -> float:
        mine = known & (lead_h >= low_h) & (lead_h < high_h)
        return float((observed <= quantiles[:, QUANTILES.index(level)])[mine].mean()) if mine.any() else float("nan")

    return Score(
        name,
        method,
        measure_coverage(0.9),
        measure_coverage(0.95),
        measure_coverage(0.1),
        {f"{low}-{high} h": measure_coverage(0.9, low, high) for low, high in LEAD_GROUPS_H},
        100 * pinball(observed, quantiles[:, QUANTILES.index(0.5)], 0.5) / mean,
        100 * pinball(observed, quantiles[:, QUANTILES.index(0.9)], 0.9) / mean,
    )


def last_third(rates: Floats, calendar: Calendar, every_h: int = 1) -> Ints:
    """Return the origins of the last third, so many hours apart."""
    hour = calendar.bins(HOUR_S)
    return np.arange(-(-2 * len(rates) // 3 // hour) * hour, len(rates), every_h * hour, dtype=np.int64)


def against_published(rates: Floats, calendar: Calendar, path: Path) -> list[dict[str, float | str]]:
    """Return errors of the published forecasts and of ours on the same steps, messages per bin.

    ``tidewise`` is made like the published ones: the mean of what was said one to four steps before.  ``tidewise, next
    step`` is what was said one step before alone.
    """
    table = pd.read_csv(path)
    at_s = seconds(table["date"])
    step = int(at_s[1] - at_s[0]) // calendar.bin_s
    place = (at_s - calendar.start_s) // calendar.bin_s
    truth = table["t"].to_numpy(float)
    origins = (place[:, None] - step * np.arange(PUBLISHED_STEPS)).ravel()
    settings = ForecastSettings(horizon=step * PUBLISHED_STEPS)
    middle = roll(rates, calendar, origins, settings).quantiles[:, QUANTILES.index(0.5)]
    steps = middle.reshape(len(place), PUBLISHED_STEPS, PUBLISHED_STEPS, step).mean(axis=3)
    made = np.stack([steps[:, back, back] for back in range(PUBLISHED_STEPS)])  # all of the same quarter of an hour
    ours = {OURS: made.mean(axis=0), f"{OURS}, next step": made[0]}
    published = {name: table[name].to_numpy(float) for name in table.columns[2:]}
    return [
        {
            "method": name,
            "mae": float(np.abs(truth - forecast).mean()),
            "rmse": float(np.sqrt(((truth - forecast) ** 2).mean())),
            "pinball_q50": pinball(truth, forecast, 0.5),
        }
        for name, forecast in {**ours, **published}.items()
    ]


def plot(path: Path, drawn: Mapping[str, tuple[Floats, Calendar, Floats]], scores: Sequence[Score]) -> None:
    """Draw, per trace, forecasts a day apart over what came, and coverage of q90 by lead."""
    figure = Figure(figsize=(14, 2.6 * len(drawn)), layout="constrained")
    axes = figure.subplots(len(drawn), 2, squeeze=False, width_ratios=[3, 1])
    for (left, right), (name, (rates, calendar, quantiles)) in zip(axes, drawn.items(), strict=True):
        origins = last_third(rates, calendar)
        days = np.arange(len(rates)) * calendar.bin_s / DAY_S
        first = max(int(origins[0]), len(rates) - 7 * calendar.day)
        for index in range(int(np.searchsorted(origins, first)), len(origins), 24):
            place = origins[index] + np.arange(quantiles.shape[2])
            at = place * calendar.bin_s / DAY_S
            low, middle, high = (quantiles[index, QUANTILES.index(level)] for level in (0.1, 0.5, 0.9))
            left.fill_between(at, low, high, color="#2563a8", alpha=0.25, lw=0)
            left.plot(at, middle, color="#2563a8", lw=0.8)
        left.plot(days[first:], rates[first:], color="#222222", lw=0.6)
        left.set(title=f"{name}: made once a day, 10-90%, over what came", xlabel="day", xlim=(days[first], days[-1]))
        for each in scores:
            if each.trace == name and each.method in {OURS, "naive_week"}:
                by_lead = each.coverage_q90_by_lead
                right.plot(list(by_lead), list(by_lead.values()), "o-", ms=3, label=each.method)
        right.axhspan(0.88, 0.92, color="green", alpha=0.15)
        right.set(title="coverage of q90 by lead", ylim=(0.7, 1.0))
        right.tick_params(labelsize=7)
        right.legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def show(scores: Sequence[Score], published: Sequence[Mapping[str, float | str]], console: Console) -> None:
    """Print the figures as tables."""
    table = Table(title="Last third, hourly origins, a day ahead (losses in % of the mean rate)")
    for heading in ("trace", "method", "q10 covers", "q90 covers", "q95 covers", "pinball q50", "pinball q90"):
        table.add_column(heading, justify="left" if heading in {"trace", "method"} else "right")
    for each in scores:
        shares = (f"{share:.1%}" for share in (each.coverage_q10, each.coverage_q90, each.coverage_q95))
        table.add_row(each.trace, each.method, *shares, f"{each.pinball_q50:.3f}", f"{each.pinball_q90:.3f}")
    console.print(table)
    if published:
        table = Table(title="Published forecasts of the taxi trace, steps of 15 minutes")
        for heading in ("method", "mae", "rmse", "pinball_q50"):
            table.add_column(heading, justify="left" if heading == "method" else "right")
        for row in published:
            table.add_row(str(row["method"]), *(f"{float(row[key]):,.0f}" for key in ("mae", "rmse", "pinball_q50")))
        console.print(table)


def main(argv: Sequence[str] | None = None) -> int:
    """Score all traces and write what was asked for."""
    parser = CommandParser(prog="forecasting.traces", description=__doc__.split("\n")[0])
    parser.add_argument("--trace", type=readable_file, nargs="+", default=sorted((DATA / "traces").glob("*.csv.gz")))
    parser.add_argument("--published", type=Path, default=PUBLISHED, help="published forecasts of the taxi trace")
    parser.add_argument("--json", type=Path, default=Path("out/forecasting.json"))
    parser.add_argument("--plot", type=Path, default=Path("out/forecasting.png"))
    parser.add_argument("--only-ours", action="store_true", help="leave the other methods out")
    chosen = parser.parse_args(argv)
    try:
        require_writable_file(chosen.json, "--json")
        require_writable_file(chosen.plot, "--plot")
    except UsageError as error:
        parser.error(str(error))
    console = Console()
    scores: list[Score] = []
    published: list[dict[str, float | str]] = []
    drawn: dict[str, tuple[Floats, Calendar, Floats]] = {}
    with threadpool_limits(limits=1):
        for path in chosen.trace:
            name, rates, calendar = read_trace(path)
            settings = ForecastSettings(horizon=calendar.day)
            for method, methods in CANDIDATES.items():
                if chosen.only_ours and method != OURS:
                    continue
                with console.status(f"{name}: {method}"):
                    made = roll(rates, calendar, last_third(rates, calendar), settings, methods=methods)
                scores.append(score(name, method, rates, calendar, made.quantiles))
                if method == OURS:
                    drawn[name] = rates, calendar, made.quantiles
            if name == PUBLISHED_TRACE and chosen.published.exists():
                with console.status("published forecasts"):
                    published = against_published(rates, calendar, chosen.published)
            console.print(f"{name} done")
    show(scores, published, console)
    write_text(chosen.json, json.dumps({"scores": list(map(asdict, scores)), "published": published}, indent=1))
    plot(chosen.plot, drawn, scores)
    console.print(f"written: {chosen.json}, {chosen.plot}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
