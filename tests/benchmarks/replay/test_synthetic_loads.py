"""Synthetic loads: the same for a name and seed, and of the kind that their names say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.replay.replay_traces import DAY_BINS, ColumnChoice, TraceError
from benchmarks.replay.split import Piece, read_piece
from benchmarks.replay.synthetic_loads import DAYS, MONDAY, SYNTHETIC, draw_load, read_load
from models.arrays import Floats


def correlate(values: Floats, lag: int) -> float:
    return float(np.corrcoef(values[lag:], values[:-lag])[0, 1])


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_load_is_its_name_and_seed(name: str) -> None:
    load, again, other = draw_load(name), read_load(Path(name)), read_load(Path(f"{name}:3"))
    assert (load.values == again.values).all()
    assert (load.values != other.values).any()
    assert (load.name, other.name, load.start_s % 86400) == (name, f"{name}_3", 0)
    assert load.values.shape == (DAYS * DAY_BINS,)
    assert (load.values > 0).all()
    assert load.notes[0].startswith("synthetic: ")
    part = read_piece(Piece(name, 2, 3))
    assert part.start_s == MONDAY + 2 * 86400
    assert (part.values == load.values[2 * DAY_BINS : 5 * DAY_BINS]).all()


def test_spikes_have_few_events_in_most_windows_and_bursts_of_many_heights_and_lengths() -> None:
    for seed in range(5):
        counts = draw_load("synthetic_spikes", seed).values
        assert 2 <= np.median(counts) <= 6
        assert counts.max() > 25 * np.median(counts)
        burst = counts > 20
        edges = np.flatnonzero(np.diff(np.concatenate([[False], burst, [False]]).astype(int)))
        lengths = edges[1::2] - edges[::2]
        assert 0.005 < burst.mean() < 0.15
        assert lengths.min() == 1
        assert lengths.max() >= 6


def test_noise_is_forgotten_at_once_or_stays_for_hours() -> None:
    white, slow = draw_load("synthetic_white_noise").values, draw_load("synthetic_slow_noise").values
    assert abs(correlate(white, 1)) < 0.15
    assert white.std() > 0.7 * white.mean()
    assert correlate(slow, 6) > 0.8


def test_the_quiet_start_begins_at_two_requests_a_minute() -> None:
    load = draw_load("synthetic_quiet_start").values
    assert 1.0 < load[:12].mean() / 5 < 4.0
    assert load[-DAY_BINS:].mean() > 20 * load[:DAY_BINS].mean()


def test_a_seed_that_is_none_is_refused_and_a_file_is_read(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="whole number, not 'x'"):
        read_load(Path("synthetic_spikes:x"))
    path = tmp_path / "load.csv"
    path.write_text("\n".join(f"2024-03-04 {n // 12:02d}:{n % 12 * 5:02d},{n}" for n in range(1, 48)))
    assert read_load(path, ColumnChoice()).name == "load"
