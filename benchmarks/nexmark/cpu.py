"""How busy the machine is while a run measures: jobs that compete for cores are no measurement.

Time of processes at a lower priority counts as idle: they give way to the run.
"""

from __future__ import annotations

from pathlib import Path

_STAT = Path("/proc/stat")
_IDLE_FIELDS = (1, 3, 4)  # nice, idle and iowait


class CpuMeter:
    """Share of all cores that were busy since it was made or asked last."""

    def __init__(self, stat: Path = _STAT) -> None:
        self._stat = stat
        self._first = self._last = self._read()

    def take(self) -> float:
        """Return the share since the last call, 0..1."""
        before, self._last = self._last, self._read()
        return _share(before, self._last)

    def in_all(self) -> float:
        """Return the share since the beginning, 0..1."""
        return _share(self._first, self._read())

    def _read(self) -> tuple[int, int]:
        fields = [int(one) for one in self._stat.read_text().splitlines()[0].split()[1:9]]
        return sum(fields), sum(fields[place] for place in _IDLE_FIELDS)


def _share(before: tuple[int, int], after: tuple[int, int]) -> float:
    passed = after[0] - before[0]
    return 1.0 - (after[1] - before[1]) / passed if passed else 0.0
