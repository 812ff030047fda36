"""One bundle in which some jobs have the models of other versions: those whose own are worse, or which a person chose.

What is learnt of the fleet as a whole, the priors of the kinds, stays that of the new bundle.  A job brings the scales
of its intervals along, so that its models are exactly what they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np

from models.arrays import Floats
from models.bundle.fleet_bundle import COUNTS, FleetBundle, JobKey, read_recovery

_BY_OPERATOR = ("grid_count", "observed_count", "scalars")
_BY_COUNT = {
    "knot_count": ("knots", "latency_at_knots_ms"),
    "edge_count": ("edge_ends", "edge_ratio"),
    "grid_count": ("mean_per_s", "sd_per_s"),
    "observed_count": ("observed", "observed_per_s"),
}


@dataclass(frozen=True, slots=True)
class _Part:
    """A job of a bundle: the arrays of it alone, its scales, and the version that has made its models."""

    bundle: FleetBundle
    at: int
    made_by: str

    def cut(self) -> dict[str, np.ndarray]:
        """Return the arrays of this job."""
        arrays, at = _with_edges(self.bundle), self.at
        operators = _span(arrays["operator_count"], at, at + 1)
        result = {name: arrays[name][at : at + 1] for name in ("operator_count", "knot_count", "edge_count")}
        result |= {name: arrays[name][operators] for name in _BY_OPERATOR}
        for count, names in _BY_COUNT.items():
            rows = operators if count in _BY_OPERATOR else slice(at, at + 1)
            span = _span(arrays[count], rows.start, rows.stop)
            result |= {name: arrays[name][span] for name in names}
        result["recovery"] = np.array([astuple(read_recovery(arrays["recovery"][at]))], float)
        return result

    def scale(self) -> Floats:
        """Return (places, levels) of the scales of its intervals; a job's operators have one set."""
        arrays = self.bundle.arrays
        first = _span(arrays["operator_count"], self.at, self.at + 1).start
        own = arrays.get("taken_set", np.full(first + 1, -1))[first : first + 1]
        return np.asarray(arrays["taken_scale"][own[0]] if len(own) and own[0] >= 0 else self.bundle.interval_scale)


def merge_jobs(bundle: FleetBundle, sources: Mapping[JobKey, FleetBundle | None]) -> FleetBundle:
    """Return the bundle of a training with the models of some jobs taken from the bundles of ``sources``.

    A job whose source is None, or does not have it, is left out; one that is not in the bundle is added.
    """
    parts, read = dict[JobKey, _Part](), dict[int, dict[JobKey, tuple[int, str]]]()
    for job in sorted({*bundle.jobs(), *sources}):
        source = sources.get(job, bundle)
        if source is None:
            continue
        if id(source) not in read:
            versions = source.versions_of_jobs()
            read[id(source)] = {job: (at, versions[job]) for at, job in enumerate(source.jobs())}
        if job in read[id(source)]:
            parts[job] = _Part(source, *read[id(source)][job])
    if all(one.bundle is bundle for one in parts.values()) and len(parts) == len(bundle.index):
        return bundle
    placed = {job: one.bundle.placed[job] for job, one in parts.items() if job in one.bundle.placed}
    index = tuple(one.bundle.index[one.at] for one in parts.values())
    arrays = {**_of_fleet(bundle), **_join(bundle, list(parts.values()))}
    return replace(bundle, index=index, arrays=arrays, placed=placed)


def _of_fleet(bundle: FleetBundle) -> dict[str, np.ndarray]:
    """Return the arrays that are of no single job."""
    by_job = {*COUNTS, "edge_count", "recovery", "scalars", *(name for names in _BY_COUNT.values() for name in names)}
    taken = {"taken_scale", "taken_set", "taken_from"}
    return {name: values for name, values in bundle.arrays.items() if name not in by_job | taken}


def _join(bundle: FleetBundle, parts: Sequence[_Part]) -> dict[str, np.ndarray]:
    cuts = [one.cut() for one in parts]
    names = list(cuts[0]) if cuts else []
    result = {name: np.concatenate([one[name] for one in cuts]) for name in names}
    if not cuts:
        arrays = _with_edges(bundle)
        result = {name: arrays[name][:0] for name in (*COUNTS, "edge_count", "recovery", "scalars")}
        result |= {name: arrays[name][:0] for names in _BY_COUNT.values() for name in names}
    scales, sets = list[Floats](), list[np.ndarray]()
    for one in parts:
        is_own, scale, number = one.made_by == bundle.model_version, one.scale(), -1
        if not is_own:
            number = next((at for at, other in enumerate(scales) if np.array_equal(other, scale)), len(scales))
            scales += [scale] if number == len(scales) else []
        sets.append(np.full(int(one.bundle.arrays["operator_count"][one.at]), number, np.int64))
    made_by = ["" if one.made_by == bundle.model_version else one.made_by for one in parts]
    if any(made_by):
        result["taken_scale"] = np.array(scales).reshape(-1, *bundle.interval_scale.shape)
        result["taken_set"] = np.concatenate([np.zeros(0, np.int64), *sets])
        result["taken_from"] = np.array(made_by, str)
    return result


def _with_edges(bundle: FleetBundle) -> Mapping[str, np.ndarray]:
    """Return the arrays; a bundle of an earlier release has no edges."""
    if "edge_count" in bundle.arrays:
        return bundle.arrays
    none = {"edge_ends": np.zeros((0, 2), np.int64), "edge_ratio": np.zeros(0)}
    return {**bundle.arrays, "edge_count": np.zeros(len(bundle.index), np.int64), **none}


def _span(counts: np.ndarray, first: int, last: int) -> slice:
    return slice(int(counts[:first].sum()), int(counts[:last].sum()))
