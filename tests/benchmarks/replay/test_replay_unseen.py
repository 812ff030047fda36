"""Traces from elsewhere: sums over five minutes, whole spans only, clear errors."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.replay.replay_traces import read_trace
from benchmarks.replay.unseen import NotObservedError, main, read_counts_per_minute, read_counts_per_second, read_series


def _packed(folder: Path, counts: np.ndarray) -> Path:
    text = folder / "workload.txt"
    text.write_text(" ".join(str(count) for count in counts.tolist()) + " ")
    path = folder / "workload.tbz2"
    with tarfile.open(path, "w:bz2") as archive:
        archive.add(text, "workload.txt")
    return path


def test_counts_per_second_are_summed(tmp_path: Path) -> None:
    """The bins hold every second once, and what follows the wanted days is left out."""
    counts = np.arange(86_400 + 100) % 7
    result = read_counts_per_second(_packed(tmp_path, counts), "1995-07-01", 1)
    assert len(result) == 288
    assert result.sum() == counts[:86_400].sum()
    assert result.iloc[1] == counts[300:600].sum()
    assert result.index[1] - result.index[0] == pd.Timedelta(minutes=5)


def test_too_few_seconds_are_an_error(tmp_path: Path) -> None:
    """A shorter file than the span asked for does not become a shorter trace silently."""
    with pytest.raises(NotObservedError, match="1000 seconds, 86400 are needed"):
        read_counts_per_second(_packed(tmp_path, np.ones(1000, int)), "1995-07-01", 1)


def test_rows_of_one_minute_are_added(tmp_path: Path) -> None:
    """Several rows of a minute belong together, and the span ends before its end."""
    times = pd.date_range("1998-05-10 23:00", "1998-05-12 01:00", freq="1min").repeat(2)
    path = tmp_path / "counts.csv"
    pd.DataFrame({"period": times, "count": 3}).to_csv(path, index=False)
    result = read_counts_per_minute(path, "1998-05-11", "1998-05-12")
    assert len(result) == 288
    assert (result == 30).all()
    with pytest.raises(NotObservedError, match="does not cover"):
        read_counts_per_minute(path, "1998-05-11", "1998-06-01")


def test_what_is_written_can_be_replayed(tmp_path: Path) -> None:
    """A written series is a trace of the same values."""
    source = tmp_path / "source.csv"
    times = pd.date_range("2014-04-10", periods=600, freq="5min")
    pd.DataFrame({"timestamp": times, "value": 100.0 + np.arange(600.0) * 37 % 97}).to_csv(source, index=False)
    path = tmp_path / "out.csv"
    read_series(source).rename("count").rename_axis("time").to_csv(path)
    assert read_trace(path).values.tolist() == (100.0 + np.arange(600.0) * 37 % 97).tolist()


def test_a_missing_clone_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the file; no trace is written without the others."""
    assert main([str(tmp_path), str(tmp_path / "out")]) == 2
    assert "nasa/workload.tbz2" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
