"""Two clusters that one cluster's queries select: two jobs of one id, or two sets of TaskManagers that both go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from include.metric_sources.prometheus.targets import Target

_MANAGER = "tm_id"


def find_double(
    job_id: str, managers: Sequence[Target], tasks: Mapping[str, Sequence[Target]], job_label: str, max_age_s: float
) -> str | None:
    """Return what of a job comes from two clusters, both named; None where all is of one.

    A target that is followed by another stays for a while, with the values that it had: it does not go on. What is told
    of a job are its JobManagers' and, by vertex id, the TaskManagers' of each attempt of a subtask; both of two may be
    there for ``max_age_s``.
    """
    for first, second in _both_go_on([*managers, *(one for several in tasks.values() for one in several)], max_age_s):
        names = [one.labels.get(job_label, "") for one in (first, second)]
        if names[0] != names[1]:
            return f"the jobs {names[0]!r} and {names[1]!r} have one id, {job_id}, at the same time"
    for vertex, targets in tasks.items():
        by_subtask: dict[str, list[Target]] = {}
        for target in targets:
            by_subtask.setdefault(target.labels["subtask_index"], []).append(target)
        pairs = [next(_of_two_managers(of_one, max_age_s), None) for of_one in by_subtask.values()]
        twice = [one for one in pairs if one is not None]
        if 2 * len(twice) > len(pairs):  # of a few subtasks Flink itself may run a second attempt beside the first
            names = [one.labels[_MANAGER] for one in twice[0]]
            return f"TaskManagers {names[0]!r} and {names[1]!r} both run job {job_id}, vertex {vertex}"
    return None


def _of_two_managers(targets: Sequence[Target], max_age_s: float) -> Iterator[tuple[Target, Target]]:
    named = [one for one in targets if one.labels.get(_MANAGER)]
    both = _both_go_on(named, max_age_s)
    return ((first, second) for first, second in both if first.labels[_MANAGER] != second.labels[_MANAGER])


def _both_go_on(targets: Sequence[Target], max_age_s: float) -> Iterator[tuple[Target, Target]]:
    """Yield the pairs of one subtask, or of the job, of which both count on for longer than one may stay behind."""
    groups: dict[tuple[str, ...], list[Target]] = {}
    for target in targets:
        place = tuple(target.labels.get(name, "") for name in ("task_id", "subtask_index"))
        groups.setdefault(place, []).append(target)
    for of_one in groups.values():
        for first, second in combinations(of_one, 2):
            spans = [one.times_s[np.isfinite(one.times_s)] for one in (first, second)]
            begin, end = max(float(one[0]) for one in spans), min(float(one[-1]) for one in spans)
            if end - begin > max_age_s and _counts_on(first, begin, end) and _counts_on(second, begin, end):
                yield first, second


def _counts_on(target: Target, begin_s: float, end_s: float) -> bool:
    within = (target.times_s >= begin_s) & (target.times_s <= end_s)
    known = (values[within & np.isfinite(values)] for values in target.values.values())
    return any(len(values) > 1 and values[-1] != values[0] for values in known)
