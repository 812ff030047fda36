"""Traces on which nothing was tuned, from public repositories that are not part of this one.

``python -m benchmarks.replay.unseen DIR OUT``: DIR holds clones of the repositories in :data:`SOURCES` under their last
names, the last one checked out at the commit that is named.  OUT gets a CSV file of five-minute counts per trace, ready
for ``python -m benchmarks.replay --trace OUT/*.csv``.
"""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from cli.arguments import CommandParser, UsageError, folder, require_writable

BIN = pd.Timedelta(minutes=5)
SOURCES = (
    "https://github.com/numenta/NAB",
    "https://github.com/nimamahmoudi/worldcup98-dataset",
    "https://github.com/reconfigurable-ml-pipeline/web-service-datasets",
    "https://github.com/chasebk/code_OTWO_ELM at 8bf65089afb5a036b2293f9309a5f5480c6cc7fa",
)
_SECONDS = "web-service-datasets/dataset"
_TRAFFIC = "code_OTWO_ELM/data/formatted"
_MINUTES = "worldcup98-dataset/invocation_count.csv"


class NotObservedError(ValueError):
    """A clone lacks a file, or the file is not what it was; the message names it."""


def read_counts_per_second(path: Path, start: str, days: int) -> pd.Series:
    """Return five-minute sums of a packed text of counts per second, from its first second on.

    Args:
        path: a tar.bz2 archive of one text, counts separated by blanks.
        start: when the text begins; it bears no times itself.
        days: so many days of it.

    Raises:
        NotObservedError: the archive is missing, holds no text of numbers, or is shorter.
    """
    try:
        with tarfile.open(path) as archive:
            text = archive.extractfile(archive.getmembers()[0])
            counts = np.array(text.read().split() if text else [], float)
    except (OSError, tarfile.TarError, IndexError, ValueError) as error:
        raise NotObservedError(f"{path}: {error}") from error
    width = int(BIN.total_seconds())
    wanted = days * 86_400
    if len(counts) < wanted:
        raise NotObservedError(f"{path}: {len(counts)} seconds, {wanted} are needed for {days} days")
    sums = counts[:wanted].reshape(-1, width).sum(axis=1)
    return pd.Series(sums, pd.date_range(start, periods=len(sums), freq=BIN))


def read_counts_per_minute(path: Path, first: str, after: str) -> pd.Series:
    """Return five-minute sums in ``[first, after)`` of a CSV file with ``period`` and ``count``, several rows a minute.

    Raises:
        NotObservedError: the file is missing, lacks these columns, or does not reach that far.
    """
    try:
        rows = pd.read_csv(path, parse_dates=["period"]).set_index("period")["count"]
    except (OSError, ValueError, KeyError) as error:
        raise NotObservedError(f"{path}: {error}") from error
    begin, end = pd.Timestamp(first), pd.Timestamp(after)
    if rows.empty or rows.index.min() > begin or rows.index.max() < end - BIN:
        raise NotObservedError(f"{path}: does not cover {first} to {after}")
    return rows[(rows.index >= begin) & (rows.index < end)].resample(BIN).sum()


def read_series(path: Path, time: str = "timestamp", value: str = "value") -> pd.Series:
    """Return a series of a CSV file; the columns' defaults are those of the benchmark of anomalies.

    Raises:
        NotObservedError: the file is missing or lacks these columns.
    """
    try:
        return pd.read_csv(path, parse_dates=[time]).set_index(time)[value]
    except (OSError, ValueError, KeyError) as error:
        raise NotObservedError(f"{path}: {error}") from error


# The first day of the tweets is not known: a Monday, so that weekdays exist at all.
TRACES: Mapping[str, Callable[[Path], pd.Series]] = {
    "nasa": lambda top: read_counts_per_second(top / _SECONDS / "nasa/workload.tbz2", "1995-07-01", 27),
    "tweets": lambda top: read_counts_per_second(top / _SECONDS / "twitter_trace/workload.tbz2", "2021-08-02", 21),
    "worldcup_may": lambda top: read_counts_per_minute(top / _MINUTES, "1998-05-11", "1998-06-01"),
    "worldcup_june": lambda top: read_counts_per_minute(top / _MINUTES, "1998-06-10", "1998-07-01"),
    "load_balancer": lambda top: read_series(top / "NAB/data/realAWSCloudwatch/elb_request_count_8c0756.csv"),
    "mentions": lambda top: read_series(top / "NAB/data/realTweets/Twitter_volume_AAPL.csv"),
    "internet_eu": lambda top: read_series(top / _TRAFFIC / "it_eu_5m.csv", "time_count", "traffic (in bits)"),
    "internet_uk": lambda top: read_series(top / _TRAFFIC / "it_uk_5m.csv", "time_count", "bits"),
}


def build_parser() -> CommandParser:
    """Return the command line."""
    about = "Write traces on which nothing was tuned, from clones of " + ", ".join(SOURCES)
    result = CommandParser(prog="unseen", description=about)
    result.add_argument("clones", type=folder, metavar="DIR", help="holds the clones")
    result.add_argument("out", type=Path, metavar="OUT", help="folder for the CSV files")
    return result


def main(argv: list[str] | None = None) -> int:
    """Write every trace, or none."""
    options = build_parser().parse_args(argv)
    try:
        made = {name: read(options.clones) for name, read in TRACES.items()}
        require_writable(options.out, "OUT")
    except (NotObservedError, UsageError) as error:
        print(f"unseen: {error}", file=sys.stderr)
        return 2
    for name, series in made.items():
        path = options.out / f"{name}.csv"
        series.rename("count").rename_axis("time").to_csv(path)
        print(f"{path}: {len(series)} rows, {series.index[0]} to {series.index[-1]}, mean {series.mean():,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
