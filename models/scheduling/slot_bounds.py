"""Bounds of a job's slots over time, from its schedules: what plans keep within, and how a reason says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import numpy as np

from include.settings import Costs
from include.settings.slot_schedules import SlotSchedule
from models.arrays import Bools, Floats, Ints
from models.scheduling.figures import format_clock, format_count
from models.scheduling.slot_counts import count_slots_of_rows, widest_of_groups

_OUTSIDE_PRICE: Final = 10.0
_NO_LIMIT: Final = 2**31


@dataclass(frozen=True, slots=True)
class BoundedWindow:
    """A window of a schedule.

    Attributes:
        name: of the schedule.
        begin_s, end_s: epoch seconds.
        least, most: slots of the job.
        operators: operator -> least and largest parallelism.
    """

    name: str
    begin_s: float
    end_s: float
    least: int = 1
    most: int = _NO_LIMIT
    operators: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def find_within(self, configurations: Ints, operators: Sequence[str], groups: Sequence[str]) -> Bools:
        """Return (K,) which configurations, (K, O), keep within."""
        slots = count_slots_of_rows(configurations, groups)
        within = (slots >= self.least) & (slots <= self.most)
        for name, (least, most) in self.operators.items():
            if name in operators:
                own = configurations[:, list(operators).index(name)]
                within &= (own >= least) & (own <= most)
        return np.asarray(within)

    def bring_within(self, configurations: Ints, operators: Sequence[str], groups: Sequence[str], limits: Ints) -> Ints:
        """Return (K, O) the nearest configurations that keep within, as far as operators may have as many subtasks."""
        result = np.array(configurations)
        for name, (least, most) in self.operators.items():
            if name in operators:
                at = list(operators).index(name)
                result[:, at] = np.clip(result[:, at], least, most)
        for row in result:
            _fit_slots(row, self.least, self.most, groups, limits)
        return np.minimum(result, limits)

    def describe(self, now_s: float) -> str:
        """Return what it asks for, as a reason says it."""
        slots = f"{self.least} to {self.most} slots" if self.least > 1 else f"at most {format_count(self.most, 'slot')}"
        if self.most >= _NO_LIMIT:
            slots = f"at least {format_count(self.least, 'slot')}" if self.least > 1 else "what it says of operators"
        return f"schedule {self.name} asks for {slots} until {format_clock(round(self.end_s), round(now_s))}"


def _fit_slots(row: Ints, least: int, most: int, groups: Sequence[str], limits: Ints) -> None:
    """Change a configuration, (O,), until its slots lie between two numbers: the widest operators of each group."""
    while (slots := int(count_slots_of_rows(row, groups))) > most and row.max() > 1:
        widest = row == widest_of_groups(row, groups)
        target = max(int(row[widest].max()) - max((slots - most) // max(len(set(groups)), 1), 1), 1)
        row[row > target] = target
    while int(count_slots_of_rows(row, groups)) < least:
        free = (row == widest_of_groups(row, groups)) & (row < limits)
        if not free.any():
            return
        row[free] += 1


@dataclass(frozen=True, slots=True)
class SlotBounds:
    """Windows of all schedules of a job within some time, by their beginnings."""

    spans: tuple[BoundedWindow, ...] = ()

    @classmethod
    def of(cls, schedules: Mapping[str, SlotSchedule], since_s: float, until_s: float) -> SlotBounds:
        """Return the windows that are on at some time between two, epoch seconds."""
        since, until = (datetime.fromtimestamp(at_s, UTC) for at_s in (since_s, until_s))
        spans = [
            BoundedWindow(
                name,
                begin.timestamp(),
                end.timestamp(),
                one.least,
                one.slots_max or _NO_LIMIT,
                {
                    operator: (its.parallelism_min or 1, its.parallelism_max or _NO_LIMIT)
                    for operator, its in one.operators.items()
                },
            )
            for name, one in schedules.items()
            for begin, end in one.list_windows(since, until)
        ]
        return cls(tuple(sorted(spans, key=lambda one: (one.begin_s, one.name))))

    def list_on(self, begin_s: float, end_s: float | None = None) -> list[BoundedWindow]:
        """Return the windows that are on at a time, or at some time between two."""
        until_s = begin_s + 1e-6 if end_s is None else end_s
        return [one for one in self.spans if one.begin_s < until_s and one.end_s > begin_s]

    def add_within(self, configurations: Ints, operators: Sequence[str], groups: Sequence[str], limits: Ints) -> Ints:
        """Return (K, O) configurations with the nearest that keep within each window; the first stays the first."""
        if not self.spans:
            return configurations
        kinds = {(one.least, one.most, tuple(sorted(one.operators.items()))): one for one in self.spans}
        further = [one.bring_within(configurations, operators, groups, limits) for one in kinds.values()]
        both = np.concatenate([configurations, *further])
        _, firsts = np.unique(both, axis=0, return_index=True)
        unique = both[np.sort(firsts)]
        slots = count_slots_of_rows(unique[1:], groups)
        return np.concatenate([unique[:1], unique[1:][np.lexsort((unique[1:].sum(axis=1), slots))]])

    def share_outside(
        self, configurations: Ints, operators: Sequence[str], groups: Sequence[str], edges_s: Floats
    ) -> Floats | None:
        """Return (J, K) the share of each step, (J + 1,) edges, in which (K, O) configurations are outside of a window.

        None without any window.
        """
        if not self.spans:
            return None
        outside = np.zeros((len(edges_s) - 1, len(configurations)))
        lasts = np.maximum(np.diff(edges_s), 1e-9)
        for one in self.spans:
            covered = np.minimum(edges_s[1:], one.end_s) - np.maximum(edges_s[:-1], one.begin_s)
            share = np.clip(covered / lasts, 0.0, 1.0)
            within = one.find_within(configurations, operators, groups)
            outside = np.maximum(outside, share[:, None] * ~within[None, :])
        return outside

    def describe(self, at_s: float, until_s: float | None = None) -> str:
        """Return which windows are on at a time, or between two, to follow a reason; empty without any."""
        return _join(one.describe(at_s) for one in self.list_on(at_s, until_s))


def price_outside(costs: Costs) -> float:
    """Return what a minute outside of its bounds costs a job: so many late ones that no lateness is worth it."""
    return _OUTSIDE_PRICE * max(costs.late_weight, costs.resource_weight)


def _join(parts: Iterable[str]) -> str:
    return "".join(f"; {part}" for part in parts)
