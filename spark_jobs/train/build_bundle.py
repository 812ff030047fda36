"""One bundle from the fits, which come to the driver as one row per operator or job; there is no loop over jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from models.arrays import Floats, Ints
from models.bundle import FleetBundle, pack_edges
from models.capacity.kinds import KINDS
from models.capacity.prior_learning import learn_prior
from models.latency import pool_latency
from models.topology import Edge
from spark_jobs.train.build_recovery import build_recovery
from spark_jobs.train.training_data import JOB, OPERATOR

_RAGGED = (
    "mean_per_s",
    "sd_per_s",
    "observed",
    "observed_per_s",
    "doubt",
    "observed_count",
    "left_out",
    "left_out_place",
)


@dataclass(frozen=True, slots=True)
class Assembled:
    """A bundle and the tables that it was made from.

    Attributes:
        bundle: the models.
        operators: one row per operator, sorted; scalar columns of the fits.
        events: the events with ``downtime_before_s``, the downtime that was to be expected before each, and
            ``downtimes_before``, from how many of the job.
        left_out: (k,) standardised residuals of points hidden from their operator's fit.
        left_out_place: (k,) models.capacity.interval_calibration.Place of each.
        recoveries: what was expected of each event before it, and what was seen: rows of recovery_scores.
    """

    bundle: FleetBundle
    operators: pd.DataFrame
    events: pd.DataFrame
    left_out: Floats
    left_out_place: Ints
    recoveries: pd.DataFrame = field(default_factory=pd.DataFrame)


def assemble(
    model_version: str,
    *,
    known: pd.DataFrame,
    selectivities: pd.DataFrame,
    edges: pd.DataFrame,
    capacities: pd.DataFrame,
    latencies: pd.DataFrame,
    events: pd.DataFrame,
) -> Assembled:
    """Put a fleet's fits together.

    Args:
        model_version: of this training.
        known: OPERATOR columns and ``kind`` of every operator of the latest job graphs.
        selectivities: OPERATOR columns and ``selectivity``.
        edges: rows of edge_ratios.fit_edge_ratios.
        capacities: rows of fits.fit_capacities.
        latencies: rows of training_fits.fit_latencies.
        events: rows of Inputs.events.
    """
    keys = list(OPERATOR)
    names = pd.concat([known[keys], selectivities[keys], capacities[keys]]).drop_duplicates()
    operators = names.merge(selectivities, how="left", on=keys).merge(capacities, how="left", on=keys)
    operators = operators.merge(known[[*keys, "kind"]], how="left", on=keys)
    operators = operators.sort_values(keys, ignore_index=True)
    # An operator through which nothing flowed yet: one record out per record in is assumed until it is measured.
    operators["selectivity"] = operators["selectivity"].astype(float).fillna(1.0)
    jobs = operators[list(JOB)].drop_duplicates(ignore_index=True)
    recovery, scored = build_recovery(jobs, events)
    arrays = {**_curves(operators), **_latency(jobs, latencies), "recovery": recovery}
    arrays["operator_count"] = operators.groupby(list(JOB), sort=True).size().to_numpy(np.int64)
    by_job = operators.groupby(list(JOB), sort=True)["operator"].agg(tuple).reset_index()
    index = tuple(by_job.itertuples(index=False, name=None))
    arrays |= pack_edges((names, ratios) for (*_, names), ratios in zip(index, _edges(by_job, edges), strict=True))
    scalars = operators.drop(columns=list(_RAGGED))
    excluded, place = _flat(operators["left_out"]), _flat(operators["left_out_place"]).astype(np.int64)
    return Assembled(FleetBundle(model_version, index, arrays), scalars, scored, excluded, place)


def _edges(jobs: pd.DataFrame, edges: pd.DataFrame) -> Iterator[dict[Edge, float]]:
    """Yield the ratios of each job's edges."""
    rows = dict(iter(edges.groupby(list(JOB), sort=False)))
    for key in jobs[list(JOB)].itertuples(index=False, name=None):
        mine = rows.get(key)
        ends = [] if mine is None else zip(mine["upstream"], mine["operator"], mine["ratio"].astype(float), strict=True)
        yield {(up, down): ratio for up, down, ratio in ends}


def _flat(parts: Iterable[object]) -> Floats:
    return np.concatenate([np.zeros(0), *(np.asarray(part, float) for part in parts if _is_list(part))])


def _is_list(part: object) -> bool:
    return isinstance(part, (list, np.ndarray))


def _counts(parts: Iterable[object]) -> Ints:
    return np.array([len(part) if isinstance(part, (list, np.ndarray)) else 0 for part in parts], np.int64)


def _curves(operators: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return capacity curves, with the priors of the kinds."""
    grid_count, observed_count = _counts(operators["mean_per_s"]), _counts(operators["observed"])
    mean, sd, observed, per_s, doubt = (_flat(operators[name]) for name in _RAGGED[:5])
    owner = np.repeat(np.arange(len(operators)), observed_count)
    scalars = operators[["slope_per_s", "length_scale", "signal_ratio", "noise_share", "selectivity"]].to_numpy(float)
    arrays = {
        "grid_count": grid_count,
        "observed_count": observed_count,
        "scalars": scalars,
        "mean_per_s": mean,
        "sd_per_s": sd,
        "observed": observed.astype(np.int64),
        "observed_per_s": per_s,
    }
    # The capacity of an idle operator is uncertain, and one that has left the graph has no kind.  At a parallelism that
    # was used less than others an operator shows how capacity depends on load, not how it scales.
    sure = doubt == 0.0
    prior = learn_prior(
        pd.Index(KINDS).get_indexer(pd.Index(operators["kind"])).astype(np.int64),
        owner[sure],
        observed[sure],
        per_s[sure],
        length_scale=scalars[:, 1],
        eligible=(operators["idle"] == False).to_numpy(),  # noqa: E712 - None where there is no curve
    )
    return {**arrays, **prior.to_arrays()}


def _latency(jobs: pd.DataFrame, latencies: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the latency curves in the order of the jobs; a job without one has the fleet's."""
    result = jobs.merge(latencies, how="left", on=list(JOB))
    fleet = pool_latency(_flat(result["knots"]), _flat(result["latency_at_knots_ms"]))
    missing = _counts(result["knots"]) == 0
    knots = [fleet.knots if gap else own for gap, own in zip(missing, result["knots"], strict=True)]
    values = [
        fleet.latency_at_knots_ms if gap else own
        for gap, own in zip(missing, result["latency_at_knots_ms"], strict=True)
    ]
    return {"knot_count": _counts(knots), "knots": _flat(knots), "latency_at_knots_ms": _flat(values)}
