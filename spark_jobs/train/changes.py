"""What changed since the champion, in at most ten lines for a reviewer."""

from __future__ import annotations

import numpy as np

from models.arrays import Floats
from models.bundle.fleet_bundle import FleetBundle
from models.training.gate import Criterion, Gate

MOST_LINES = 10
NAMES_SHOWN = 3
_SHOWN_CHANGE = 0.0005  # as much as a line shows


def describe_changes(new: FleetBundle, champion: FleetBundle | None, gate: Gate) -> list[str]:
    """Return the lines, without a mark before them, of a challenger beside the model in use, None before the first."""
    if champion is None:
        return ["There was no champion before: this is the first model."]
    lines = [
        f"Champion: `{champion.model_version}`.",
        *describe_bundles(new, champion),
        _criteria("Better", [one for one in gate.criteria if one.result == "better"]),
        _criteria("Worse, within the tolerance", [one for one in gate.criteria if one.result.startswith("worse, ")]),
        _criteria("Worse, beyond the tolerance", [one for one in gate.criteria if one.is_worse]),
        "Not judged: "
        + (", ".join(f"{one.name} ({one.lack})" for one in gate.criteria if one.lack) or "nothing")
        + ".",
    ]
    return lines[:MOST_LINES]


def describe_bundles(new: FleetBundle, old: FleetBundle) -> list[str]:
    """Return what differs between two versions: jobs, curves, capacities, downtimes, intervals; a line each."""
    return [
        _jobs(set(new.jobs()), set(old.jobs())),
        f"Operators with a capacity curve: {_curves(old)} -> {_curves(new)}.",
        _capacities(new, old),
        _downtimes(new, old),
        _factors(new, old),
    ]


def list_capacity_changes(new: FleetBundle, old: FleetBundle, most: int = MOST_LINES) -> list[str]:
    """Return the jobs whose capacities differ most where both observed them, a line each."""
    ours, theirs = _list_observed(new), _list_observed(old)
    changes = dict[tuple[str, str], list[float]]()
    for key in ours.keys() & theirs.keys():
        changes.setdefault(key[:2], []).append(ours[key] / theirs[key] - 1.0)
    largest = sorted(((max(each, key=abs), job) for job, each in changes.items()), key=lambda one: (-abs(one[0]), one))
    return [f"{'/'.join(job)}: {change:+.1%}" for change, job in largest[:most] if abs(change) >= _SHOWN_CHANGE]


def _jobs(new: set[tuple[str, str]], old: set[tuple[str, str]]) -> str:
    parts = [
        f"{len(names)} {word} ({', '.join('/'.join(name) for name in sorted(names)[:NAMES_SHOWN])}"
        f"{', ...' if len(names) > NAMES_SHOWN else ''})"
        for word, names in (("new", new - old), ("gone", old - new))
        if names
    ]
    return f"Jobs: {len(old)} -> {len(new)}" + (f"; {'; '.join(parts)}" if parts else "") + "."


def _curves(bundle: FleetBundle) -> int:
    return int((bundle.arrays["grid_count"] > 0).sum())


def _list_observed(bundle: FleetBundle) -> dict[tuple[str, str, str, int], float]:
    """Return the expected capacity of each operator at each parallelism at which it was observed."""
    arrays, names = bundle.arrays, bundle.operators()
    owner = np.repeat(np.arange(len(names)), arrays["observed_count"])
    begin = np.cumsum(arrays["grid_count"]) - arrays["grid_count"]
    mean = arrays["mean_per_s"][begin[owner] + arrays["observed"] - 1]
    pairs = zip(owner.tolist(), arrays["observed"].tolist(), mean.tolist(), strict=True)
    return {(*names[row], parallelism): per_s for row, parallelism, per_s in pairs}


def _capacities(new: FleetBundle, champion: FleetBundle) -> str:
    ours, theirs = _list_observed(new), _list_observed(champion)
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return "Capacities: no operator was observed at the same parallelism by both."
    change = np.array([ours[key] / theirs[key] - 1.0 for key in common])
    most = int(np.argmax(np.abs(change)))
    _, job, operator, parallelism = common[most]
    return (
        f"Capacities where both observed: {np.median(np.abs(change)):.1%} apart in the median, most at "
        f"{job}/{operator} with {parallelism} subtasks ({change[most]:+.1%}); "
        f"{len(ours.keys() - theirs.keys())} points are new."
    )


def _downtimes(new: FleetBundle, champion: FleetBundle) -> str:
    ours, theirs = (np.median(each.arrays["recovery"][:, [0, 2]], axis=0) for each in (new, champion))
    return (
        f"Downtime, median of the jobs: rescale {theirs[0]:.1f} -> {ours[0]:.1f} s, "
        f"restart {theirs[1]:.1f} -> {ours[1]:.1f} s."
    )


def _factors(new: FleetBundle, champion: FleetBundle) -> str:
    ours, theirs = (_factor(each.arrays["recovery"]) for each in (new, champion))
    known = f"{theirs:.2f}" if theirs == theirs else "none"  # noqa: PLR0124 - NaN alone differs from itself
    return f"Width of recovery's 80% interval, in units of its scale: {known} -> {ours:.2f}."


def _factor(recovery: Floats) -> float:
    """Return the fleet's factor; NaN of a model that was made before there were intervals."""
    return float(recovery[0, -2]) if len(recovery) and recovery.shape[1] > 6 else float("nan")


def _criteria(word: str, criteria: list[Criterion]) -> str:
    reported = ", ".join(f"{one.name} {one.challenger:.2%} against {one.reference:.2%}" for one in criteria)
    return f"{word}: {reported or 'nothing'}."
