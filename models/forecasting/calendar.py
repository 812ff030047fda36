"""Time as bins: the place of a bin in the local day and week."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import numpy as np

from include.utc import DAY_S, HOUR_S
from models.arrays import Floats, Ints

EPOCH_WEEKDAY = 3
"""1970-01-01 was a Thursday; Monday is 0."""
SUNDAY = 6


@dataclass(frozen=True, slots=True)
class Calendar:
    """Bins of equal length, counted from the first bin of the history.

    Attributes:
        start_s: start of bin 0, seconds since 1970 in UTC.
        bin_s: length of a bin in seconds; divides a day.
        zone: IANA name of the time zone whose clock the load follows.
        holidays: days of that zone which are like Sundays.
    """

    start_s: int
    bin_s: int
    zone: str = "UTC"
    holidays: frozenset[date] = field(default=frozenset())

    def __post_init__(self) -> None:
        if self.bin_s < 1 or DAY_S % self.bin_s:
            raise ValueError(f"bins of {self.bin_s} s do not divide a day; set forecast.bin_s to 300, 600 or 900")

    @property
    def day(self) -> int:
        """Bins in a day."""
        return DAY_S // self.bin_s

    @property
    def week(self) -> int:
        """Bins in a week."""
        return 7 * self.day

    def bins(self, seconds: float) -> int:
        """Return how many bins cover a length of time; at least one."""
        return max(1, round(seconds / self.bin_s))

    def later(self, bins: int) -> Calendar:
        """Return the same calendar, counted from a later bin."""
        return Calendar(self.start_s + bins * self.bin_s, self.bin_s, self.zone, self.holidays)

    def local_s(self, first: int, last: int) -> Floats:
        """Return the local time of the middle of bins ``[first, last)``, seconds since 1970, shape (last - first,)."""
        middle_s = self.start_s + (np.arange(first, last, dtype=np.float64) + 0.5) * self.bin_s
        if self.zone == "UTC" or not len(middle_s):
            return middle_s
        zone = ZoneInfo(self.zone)
        hour = np.floor(middle_s / HOUR_S).astype(np.int64)  # clocks change on the hour
        offset_s = np.array(
            [_offset_s(zone, int(each) * HOUR_S) for each in range(int(hour[0]), int(hour[-1]) + 1)], np.float64
        )
        return np.asarray(middle_s + offset_s[hour - hour[0]])

    def weekday(self, first: int, last: int) -> Ints:
        """Return the local weekday of bins ``[first, last)``, Monday 0 to Sunday 6; a holiday is a Sunday."""
        day = np.floor(self.local_s(first, last) / DAY_S).astype(np.int64)
        weekday = np.mod(day + EPOCH_WEEKDAY, 7)
        free = [each.toordinal() - date(1970, 1, 1).toordinal() for each in self.holidays]
        return np.asarray(np.where(np.isin(day, free), SUNDAY, weekday), np.int64)

    def day_share(self, first: int, last: int) -> Floats:
        """Return the place in the local day of the middle of bins ``[first, last)``: 0..1, shape (last - first,)."""
        return np.asarray(np.mod(self.local_s(first, last), DAY_S) / DAY_S)

    def week_share(self, first: int, last: int) -> Floats:
        """Return the place in the local week, from Thursday, of bins ``[first, last)``: 0..1, shape (last - first,)."""
        days = np.mod(self.weekday(first, last) - EPOCH_WEEKDAY, 7)
        return np.asarray((days + self.day_share(first, last)) / 7)


def _offset_s(zone: ZoneInfo, at_s: int) -> float:
    offset = datetime.fromtimestamp(at_s, UTC).astimezone(zone).utcoffset()
    return offset.total_seconds() if offset else 0.0
