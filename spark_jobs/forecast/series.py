"""The Python side of the forecast stage: a batch of series in, one row of arrays per series out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from include.utc import DAY_S
from models.arrays import Floats
from models.forecasting import Calendar, ForecastBatch, ForecastSettings, default_registry, forecast_batch
from models.forecasting.boosting import BoostingFit, fit
from models.forecasting.known_events import KnownEvent, find_event_bins, list_events, raise_rates
from models.forecasting.rate_history import prepare
from spark_jobs.packed_objects import PACKED, pack_cells
from spark_jobs.source_inputs.one_by_one import work_with_fallback
from spark_jobs.source_inputs.source_windows import SERIES, HistoryBins

if TYPE_CHECKING:
    from include.settings import Event  # workers need none of the settings, whose checks take half a second

CHUNK = 256
"""Series forecast together: enough to share the work, few enough for a worker's memory (28 days: 16 MB an array)."""

BATCH, KEYS = "batch", "keys"
RESULT_COLUMNS = {
    **dict.fromkeys((*SERIES, "method", "fallback_reason", "input_hash"), "STRING"),
    **dict.fromkeys(("q10", "q50", "q90", "q95"), "ARRAY<DOUBLE>"),
    **{"event": "ARRAY<STRING>", "event_factor": "ARRAY<DOUBLE>", "event_spread": "ARRAY<DOUBLE>"},
    **{"methods": "ARRAY<STRING>", "origins": "ARRAY<INT>", "mase": "ARRAY<DOUBLE>", "pinball_q90": "ARRAY<DOUBLE>"},
    **{"coverage_q90": "ARRAY<DOUBLE>", "champion": "ARRAY<BOOLEAN>"},
}
"""Of a forecast: column -> type, as SQL."""
_OF_BEFORE = {"plan_error_max": 0.15}
"""A setting that went and shaped no quantile: with it, equal input has the version that it always had."""


@dataclass(frozen=True, slots=True)
class ForecastTask(HistoryBins):
    """Common inputs of every worker; plain values, so that they can be shipped.

    Attributes:
        horizon_bins: bins to predict.
        backtest_origins, champion_margin: see models.forecasting.ForecastSettings.
        stale_after_s: a series last measured longer ago than this is called stale.
        time_zones, holidays: by "cluster" or "cluster/job", see include.settings.Forecast; days as ISO text.
        events: that people know of, by name.
    """

    horizon_bins: int
    backtest_origins: int
    champion_margin: float
    stale_after_s: float
    time_zones: dict[str, str] = field(default_factory=dict)
    holidays: dict[str, tuple[str, ...]] = field(default_factory=dict)
    events: dict[str, Event] = field(default_factory=dict)

    @property
    def now_s(self) -> float:
        """End of the history, seconds since 1970."""
        return self.first_bin_s + self.history_bins * self.bin_s

    def calendar_of(self, cluster: str, job: str) -> Calendar:
        """Return the bins on the clock and with the holidays of a job, else of its cluster."""
        name = f"{cluster}/{job}"
        zone = self.time_zones.get(name, self.time_zones.get(cluster, "UTC"))
        free = self.holidays.get(name, self.holidays.get(cluster, ()))
        return Calendar(self.first_bin_s, self.bin_s, zone, frozenset(map(date.fromisoformat, free)))

    @property
    def version_text(self) -> str:
        """Everything that shapes a forecast besides its input, as canonical JSON."""
        events = {name: one.model_dump(mode="json") for name, one in self.events.items()}
        return json.dumps(asdict(self) | {"events": events} | _OF_BEFORE, sort_keys=True)

    def events_of(self, series: pd.DataFrame) -> list[tuple[KnownEvent, ...]]:
        """Return the events of each of some series."""
        names = zip(series["cluster"], series["job"], series["operator"], strict=True)
        return [list_events(self.events, f"{cluster}/{job}", source) for cluster, job, source in names]


def make_forecaster(task: ForecastTask, fits: tuple[BoostingFit, ...] = ()) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return the function that Spark applies to each batch of series; ``fits`` are those of the global model."""

    def forecast(series: pd.DataFrame) -> pd.DataFrame:
        ordered = series.sort_values(["cluster", "job", "operator"], ignore_index=True)
        parts = [part.iloc[at : at + CHUNK] for part in by_calendar(ordered, task) for at in range(0, len(part), CHUNK)]
        made = [one for part in parts for one in forecast_apart(part, task, fits)]
        return pd.concat(made, ignore_index=True) if made else pd.DataFrame(columns=list(RESULT_COLUMNS))

    return forecast


def make_worker(
    work: Callable[[pd.DataFrame], pd.DataFrame], schema: pa.Schema, list_keys: Callable[[pa.Table], pa.Table]
) -> Callable[[Iterator[pa.Table]], Iterator[pa.RecordBatch]]:
    """Return the function that Spark applies to parts of the series, tables of some batches.

    ``work`` is applied to each batch, the rows of one value of :data:`BATCH`, and returns rows of the schema;
    ``list_keys`` makes of these what the driver needs, :data:`KEYS`.
    """

    def work_on(part: pa.Table) -> pa.Table:
        batches = part.to_pandas().groupby(BATCH)
        made = [work(own.drop(columns=BATCH).reset_index(drop=True)) for _, own in batches]
        return pa.concat_tables(pa.Table.from_pandas(one, schema, preserve_index=False) for one in made)

    def apply(parts: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        for made in map(work_on, parts):
            yield pa.record_batch({PACKED: pack_cells([made]), KEYS: pack_cells([list_keys(made)])})

    return apply


def forecast_apart(series: pd.DataFrame, task: ForecastTask, fits: tuple[BoostingFit, ...]) -> list[pd.DataFrame]:
    """Return the forecasts of a chunk, in one frame unless some series of it fails."""
    names = list(zip(*(series[name] for name in SERIES), strict=True))
    rows = range(len(series))
    made = work_with_fallback(rows, lambda own: forecast_chunk(series.iloc[list(own)], task, fits), names.__getitem__)
    return [one for _, one in made]


def by_calendar(series: pd.DataFrame, task: ForecastTask) -> list[pd.DataFrame]:
    """Divide the series into those of one calendar each, in the order of their first series."""
    calendars = [task.calendar_of(*names) for names in zip(series["cluster"], series["job"], strict=True)]
    rows: dict[Calendar, list[int]] = {}
    for row, calendar in enumerate(calendars):
        rows.setdefault(calendar, []).append(row)
    return [series.iloc[mine] for mine in rows.values()]


def fit_global(series: pd.DataFrame, task: ForecastTask) -> tuple[BoostingFit, ...]:
    """Fit the global model on some series: once on all they have, once without the days of the backtest."""
    histories = []
    for part in by_calendar(series, task):
        calendar = task.calendar_of(part["cluster"].iloc[0], part["job"].iloc[0])
        histories.append(prepare(_rates(part, task)[0], calendar))
    early_s = task.now_s - task.backtest_origins * DAY_S
    with ThreadPoolExecutor() as pool:  # LightGBM fits each on one core, for the same bits
        made = pool.map(lambda until_s: fit(histories, until_s, task.horizon_bins), (early_s, task.now_s))
        return tuple(each for each in made if each is not None)


def forecast_chunk(series: pd.DataFrame, task: ForecastTask, fits: tuple[BoostingFit, ...] = ()) -> pd.DataFrame:
    """Forecast some series of one calendar.

    A row each: cluster, job, operator, previous_champion (null when none), is_chosen (whether that was chosen today),
    rate_per_s, an array over the bins, and last_seen_s.
    """
    rates, measured_until_s = _rates(series, task)
    champions = [name if isinstance(name, str) else None for name in series["previous_champion"]]
    are_chosen = [bool(one) for one in series["is_chosen"]]
    batch = forecast_batch(
        rates,
        task.calendar_of(series["cluster"].iloc[0], series["job"].iloc[0]),
        ForecastSettings(task.horizon_bins, task.backtest_origins, task.champion_margin),
        methods=default_registry(fits),
        previous_champions=champions,
        are_chosen=are_chosen,
    )
    result = series[["cluster", "job", "operator"]].reset_index(drop=True)
    result["method"] = batch.method
    result["fallback_reason"] = [
        _reason(reason, at_s, task) for reason, at_s in zip(batch.reason, measured_until_s.tolist(), strict=True)
    ]
    result["input_hash"] = [
        hashlib.sha256(row.tobytes() + (champion or "").encode() + (b" chosen" if is_chosen else b"")).hexdigest()
        for row, champion, is_chosen in zip(rates, champions, are_chosen, strict=True)
    ]
    return pd.concat([result, _quantile_columns(batch, task.events_of(series), task), _score_columns(batch)], axis=1)


def _rates(series: pd.DataFrame, task: ForecastTask) -> tuple[Floats, Floats]:
    """Return rates in bins, records/s, shape (n, T), NaN in those of events: they tell nothing of usual days.

    And the end of the last window of each that was measured, epoch seconds, NaN without one, shape (n,).
    """
    rates = np.stack([np.asarray(own, np.float64) for own in series["rate_per_s"]])
    rates[np.isnan(rates)] = np.nan  # one NaN, of the same bits
    measured_until_s = series["last_seen_s"].to_numpy(np.float64)
    for row, events in enumerate(task.events_of(series)):
        if events:
            rates[row, find_event_bins(events, task.first_bin_s, task.bin_s, task.history_bins)] = np.nan
    return rates, measured_until_s


def _reason(reason: str | None, last_seen_s: float, task: ForecastTask) -> str | None:
    """Add to a fallback's reason that the series is stale."""
    age_s = task.as_of_s - last_seen_s
    if not age_s > task.stale_after_s:
        return reason
    observed = datetime.fromtimestamp(last_seen_s, UTC)
    stale = f"stale: last measured {observed:%Y-%m-%d %H:%M} UTC, {age_s / 3600:.1f} hours before"
    return stale if reason is None else f"{reason}; {stale}"


def _quantile_columns(batch: ForecastBatch, events: Sequence[Sequence[KnownEvent]], task: ForecastTask) -> pd.DataFrame:
    """Return the quantiles with the events that come, and what of them is the events'."""
    pairs = zip(batch.quantiles.transpose(1, 0, 2), events, strict=True)
    raised = [raise_rates(values, mine, task.now_s, task.bin_s) for values, mine in pairs]
    made: dict[str, list[object]] = {
        name: [one.quantiles[level] for one in raised] for level, name in enumerate(("q10", "q50", "q90", "q95"))
    }
    made["event"] = [[name or None for name in one.names] for one in raised]
    made["event_factor"], made["event_spread"] = [one.factor for one in raised], [one.spread for one in raised]
    return pd.DataFrame(made)


def _score_columns(batch: ForecastBatch) -> pd.DataFrame:
    count = len(batch.method)
    champion = np.arange(len(batch.methods))[:, None] == batch.champion
    return pd.DataFrame(
        {
            "methods": [list(batch.methods)] * count,
            "origins": list(batch.origins.T.astype(np.int32)),
            "mase": list(batch.mase.T),
            "pinball_q90": list(batch.pinball_q90.T),
            "coverage_q90": list(batch.coverage_q90.T),
            "champion": list(champion.T),
        }
    )
