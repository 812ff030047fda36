"""The models of a whole fleet as a handful of flat arrays: one artefact per training, cheap to broadcast.

Ragged parts (grids, observed points, knots) lie end to end; counts per operator or job give where each begins.

| array | shape | content |
| --- | --- | --- |
| operator_count, knot_count | (jobs,) | operators and latency knots of each job |
| recovery | (jobs, 14) | the fields of RecoveryModel in their order |
| knots, latency_at_knots_ms | (all knots,) | |
| grid_count, observed_count | (operators,) | 0: the operator has no capacity curve |
| scalars | (operators, 5) | slope_per_s, length_scale, signal_ratio, noise_share, selectivity |
| mean_per_s, sd_per_s | (all grid points,) | on the grid 1..grid_count |
| observed, observed_per_s | (all observed points,) | |
| interval_scale | (places, levels) | models/capacity/interval_calibration.py; not yet in sd_per_s |
| taken_scale | (sets, places, levels) | the same of jobs whose models are those of other versions |
| taken_set | (operators,) | which of those sets an operator has; -1: interval_scale |
| taken_from | (jobs,) | model version whose models a job has; empty: this one's own |
| edge_count | (jobs,) | edges of each job whose ratio is known, or known to be unknown |
| edge_ends, edge_ratio | (all edges, 2), (all edges,) | places of both ends among the job's operators; the ratio |
| fleet_kinds, fleet_prior | (kinds,), (kinds, 8) | priors by kind of operator (models/capacity/fleet_prior.py) |
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from typing import Any

import numpy as np

from include.domain.operator_matching import PlacedOperator, match_operators
from models.arrays import Floats, Ints
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.capacity.conformal import LEVELS
from models.capacity.interval_calibration import SupportRegion, find_places, find_places_of
from models.topology import Edge

JobKey = tuple[str, str]
COUNTS = ("operator_count", "knot_count", "grid_count", "observed_count")
_ROWS_OF = {
    "operator_count": (),
    "knot_count": ("knots", "latency_at_knots_ms"),
    "grid_count": ("mean_per_s", "sd_per_s"),
    "observed_count": ("observed", "observed_per_s"),
}
EXPANDED_BYTES, EXPANDED_RATIO = 64 * 2**20, 50  # floats of models compress by less than ten
ARRAYS = (*COUNTS, "recovery", "knots", "latency_at_knots_ms", "scalars", "mean_per_s", "sd_per_s", "observed")


class BundleError(ValueError):
    """A bundle that cannot be read, or a job that is not in it."""


def _starts(counts: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


@dataclass(frozen=True, slots=True)
class FleetBundle:
    """Models of every job of every cluster.

    Attributes:
        model_version: of the training that made it.
        index: (cluster, job) and the names of the job's operators, in the order of the arrays.
        arrays: see the table of the module.
        placed: the operators of jobs as of training, by which they are found under other names; without those of jobs
            whose graph was not known, and empty in a bundle of an earlier release.
    """

    model_version: str
    index: tuple[tuple[str, str, tuple[str, ...]], ...]
    arrays: Mapping[str, np.ndarray]
    placed: Mapping[JobKey, tuple[PlacedOperator, ...]] = field(default_factory=dict)
    _position: dict[JobKey, int] = field(init=False, repr=False, compare=False)
    _begin: dict[str, Ints] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        missing = {*ARRAYS, "observed_per_s"} - set(self.arrays)
        if missing:
            raise BundleError(f"bundle {self.model_version}: arrays {sorted(missing)} are missing; train again")
        position = {(cluster, job): at for at, (cluster, job, _) in enumerate(self.index)}
        if len(position) != len(self.index):
            raise BundleError(f"bundle {self.model_version}: a job stands in it twice")
        object.__setattr__(self, "_position", position)
        object.__setattr__(self, "_begin", {name: _starts(self.arrays[name]) for name in COUNTS})

    def jobs(self) -> tuple[JobKey, ...]:
        """Return the (cluster, job) pairs of the bundle."""
        return tuple(self._position)

    def operators(self) -> list[tuple[str, str, str]]:
        """Return (cluster, job, operator) of every operator, in the order of the operator arrays."""
        return [(cluster, job, operator) for cluster, job, names in self.index for operator in names]

    def with_names_of(self, present: Mapping[JobKey, Sequence[PlacedOperator]]) -> FleetBundle:
        """Return the bundle with the operators of jobs under their present names; one that has gone has its id."""
        index = tuple(
            (cluster, job, self._present_names(cluster, job, names, present.get((cluster, job), ())))
            for cluster, job, names in self.index
        )
        return replace(self, index=index, placed={**self.placed, **{job: tuple(one) for job, one in present.items()}})

    def _present_names(
        self, cluster: str, job: str, names: tuple[str, ...], present: Sequence[PlacedOperator]
    ) -> tuple[str, ...]:
        placed = self.placed.get((cluster, job), ())
        if not placed or not present or tuple(placed) == tuple(present):
            return names
        result, ids = match_operators(placed, present), {one.name: one.vertex_id for one in placed}
        return tuple(result.get(name, f"{name} ({ids[name]})" if name in ids else name) for name in names)

    def for_job(self, cluster: str, job: str, present: Sequence[PlacedOperator] = ()) -> JobModels:
        """Return the models of one job, by the names that its operators have in ``present``, else by those of training.

        Raises:
            BundleError: the job was not there, or had no usable observation, when the bundle was trained.
        """
        at = self._position.get((cluster, job))
        if at is None:
            raise BundleError(f"job {job!r} of cluster {cluster!r} is not in model {self.model_version}; train again")
        begin = int(self._begin["operator_count"][at])
        names = self._present_names(cluster, job, self.index[at][2], present)
        rows = range(begin, begin + len(names))
        curves = {name: self._curve(row) for name, row in zip(names, rows, strict=True) if self._has_curve(row)}
        selectivity = {name: float(self.arrays["scalars"][row, 4]) for name, row in zip(names, rows, strict=True)}
        recovery = read_recovery(self.arrays["recovery"][at])
        span = self._span("knot_count", at)
        latency = LatencyModel(self.arrays["knots"][span], self.arrays["latency_at_knots_ms"][span])
        return JobModels(curves, selectivity, recovery, latency, self._edges(at, names))

    def _edges(self, at: int, names: tuple[str, ...]) -> dict[Edge, float]:
        """Return the ratios of a job's edges; none in a bundle of an earlier release."""
        if "edge_count" not in self.arrays:
            return {}
        first = int(self.arrays["edge_count"][:at].sum())
        span = slice(first, first + int(self.arrays["edge_count"][at]))
        ends, ratios = self.arrays["edge_ends"][span].tolist(), self.arrays["edge_ratio"][span].tolist()
        return {(names[up], names[down]): ratio for (up, down), ratio in zip(ends, ratios, strict=True)}

    def _span(self, count: str, at: int) -> slice:
        begin = self._begin[count]
        return slice(int(begin[at]), int(begin[at + 1]))

    def _has_curve(self, row: int) -> bool:
        return bool(self.arrays["grid_count"][row])

    def _curve(self, row: int) -> CapacityCurve:
        grid, recorded = self._span("grid_count", row), self._span("observed_count", row)
        slope, length_scale, signal_ratio, noise_share, _ = map(float, self.arrays["scalars"][row])
        parallelism, observed = np.arange(1, grid.stop - grid.start + 1), self.arrays["observed"][recorded]
        scale = self.scale_at(np.array(row), find_places_of(parallelism, observed))
        return CapacityCurve(
            parallelism=parallelism,
            mean_per_s=self.arrays["mean_per_s"][grid],
            sd_per_s=self.arrays["sd_per_s"][grid] * scale[:, 0],
            tail_ratio=scale[:, 1] / scale[:, 0],
            observed=observed,
            observed_per_s=self.arrays["observed_per_s"][recorded],
            slope_per_s=slope,
            length_scale=length_scale,
            signal_ratio=signal_ratio,
            noise_share=noise_share,
        )

    @property
    def interval_scale(self) -> Floats:
        """(places, levels) factors on the deviations of capacities; ones in a bundle of an earlier release."""
        return self.arrays.get("interval_scale", np.ones((len(SupportRegion), len(LEVELS))))

    def scale_at(self, rows: Ints, places: Ints) -> Floats:
        """Return (n, levels) factors on the deviations of operators, (n,) or one, at :class:`SupportRegion` (n,)."""
        if "taken_set" not in self.arrays:
            return np.asarray(self.interval_scale[places])
        scales = np.concatenate([self.interval_scale[None], self.arrays["taken_scale"]])
        return np.asarray(scales[self.arrays["taken_set"][rows] + 1, places])

    def versions_of_jobs(self) -> dict[JobKey, str]:
        """Return job -> model version whose models it has: another one where a training has taken none of its own."""
        texts = self.arrays.get("taken_from", np.full(len(self.index), "")).tolist()
        return {job: text or self.model_version for job, text in zip(self._position, texts, strict=True)}

    def describe_jobs(self) -> list[dict[str, object]]:
        """Return a row for each job: cluster, job, how many operators and curves it has, and whose models."""
        ends = np.cumsum(self.arrays["operator_count"])
        curves = [int(part.sum()) for part in np.split(self.arrays["grid_count"] > 0, ends[:-1])] if len(ends) else []
        versions = self.versions_of_jobs()
        return [
            {
                "cluster": cluster,
                "job": job,
                "operators": len(names),
                "curves": count,
                "models_from": versions[cluster, job],
            }
            for (cluster, job, names), count in zip(self.index, curves, strict=True)
        ]

    def renamed(self, model_version: str) -> FleetBundle:
        """Return the same models under another version; each job still says which one made them."""
        made_by = self.versions_of_jobs().values()
        if not self.index:
            return replace(self, model_version=model_version)
        arrays = {**self.arrays, "taken_from": np.array(list(made_by), str)}
        if "taken_set" not in arrays:
            arrays["taken_scale"] = np.zeros((0, *self.interval_scale.shape))
            arrays["taken_set"] = np.full(len(self.operators()), -1, np.int64)
        return replace(self, model_version=model_version, arrays=arrays)

    def grid_places(self) -> Ints:
        """Return (all grid points,) the :class:`SupportRegion` of each among the observed points of its operator."""
        grid, observed = self.arrays["grid_count"], self.arrays["observed"]
        owner = np.repeat(np.arange(len(grid)), grid)
        parallelism = np.arange(len(owner)) - np.repeat(self._begin["grid_count"][:-1], grid) + 1
        of_point = np.repeat(np.arange(len(grid)), self.arrays["observed_count"])
        lowest, highest = np.full(len(grid), np.inf), np.zeros(len(grid))
        np.minimum.at(lowest, of_point, observed)
        np.maximum.at(highest, of_point, observed)
        wide = int(max(parallelism.max(initial=0), observed.max(initial=0))) + 1
        is_observed = np.isin(owner * wide + parallelism, of_point * wide + observed)
        return find_places(parallelism, lowest[owner], highest[owner], is_observed)

    def to_bytes(self) -> bytes:
        """Return the bundle as an npz archive; the same models give the same bytes."""
        placed = [[*job, [astuple(one) for one in operators]] for job, operators in sorted(self.placed.items())]
        header = json.dumps({"model_version": self.model_version, "index": self.index, "placed": placed})
        buffer = io.BytesIO()
        content: dict[str, Any] = {**self.arrays, "header": np.frombuffer(header.encode(), np.uint8)}
        np.savez_compressed(buffer, **content)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> FleetBundle:
        """Read what :meth:`to_bytes` wrote; nothing is ever unpickled.

        Raises:
            BundleError: the content is no such archive, or would expand to far more than models do.
        """
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                expanded = sum(one.file_size for one in packed.infolist())
            if expanded > max(EXPANDED_BYTES, EXPANDED_RATIO * len(content)):
                raise BundleError(f"{len(content)} bytes would expand to {expanded}")
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files if name != "header"}
                header = json.loads(archive["header"].tobytes().decode())
            index = tuple((str(cluster), str(job), tuple(map(str, names))) for cluster, job, names in header["index"])
            placed = {
                (cluster, job): tuple(PlacedOperator(name, vertex, at, tuple(fed)) for name, vertex, at, fed in rows)
                for cluster, job, rows in header.get("placed", ())
            }
            bundle = cls(str(header["model_version"]), index, arrays, placed)
            bundle._require_whole()
        except Exception as error:  # whatever was put in its place
            reported = str(error) if str(error).strip("'") else type(error).__name__
            raise BundleError(f"not a bundle of models: {reported}; train again") from error
        return bundle

    def _require_whole(self) -> None:
        """Raise a BundleError unless each array has as many rows as the counts say."""
        jobs, operators = len(self.index), len(self.operators())
        rows = dict.fromkeys(("operator_count", "knot_count", "recovery"), jobs)
        rows |= dict.fromkeys(("grid_count", "observed_count", "scalars"), operators)
        for count, names in _ROWS_OF.items():
            counts = self.arrays[count]
            if not np.issubdtype(counts.dtype, np.integer) or (counts < 0).any():
                raise BundleError(f"{count} holds no counts")
            rows |= dict.fromkeys(names, int(counts.sum()))
        if self.arrays["operator_count"].tolist() != [len(names) for _, _, names in self.index]:
            raise BundleError("operator_count is not that of the names")
        for name, expected in rows.items():
            if self.arrays[name].shape[:1] != (expected,):
                raise BundleError(f"{name} has the shape {self.arrays[name].shape}, and not {expected} rows")


def pack_edges(jobs: Iterable[tuple[Sequence[str], Mapping[Edge, float]]]) -> dict[str, np.ndarray]:
    """Return the arrays of the edges of jobs: in the bundle's order, their operators and the ratios of their edges."""
    counts, ends, ratios = list[int](), list[tuple[int, int]](), list[float]()
    for names, edges in jobs:
        place = {name: number for number, name in enumerate(names)}
        known = {edge: ratio for edge, ratio in edges.items() if place.keys() >= set(edge)}
        counts.append(len(known))
        ends += [(place[up], place[down]) for up, down in known]
        ratios += known.values()
    return {
        "edge_count": np.array(counts, np.int64),
        "edge_ends": np.array(ends, np.int64).reshape(-1, 2),
        "edge_ratio": np.array(ratios, float),
    }


def read_recovery(row: Floats) -> RecoveryModel:
    """Return the recovery model of a row; one that was made with fewer fields has the others' defaults."""
    values = dict(zip((each.name for each in fields(RecoveryModel)), row.tolist(), strict=False))
    return RecoveryModel(**{**values, "events": int(values["events"])})
