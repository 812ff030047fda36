"""Fits of capacity curves on the executors: whole batches of operators per task."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark import SparkContext

from models.training.held_out import hash_texts
from models.training.operator_fits import Fits, OperatorFit, OperatorPoints, fit_operators
from spark_jobs.source_inputs.one_by_one import work_with_fallback

OPERATORS_PER_BATCH = 256
Fitted = list[tuple[OperatorPoints, OperatorFit]]


def count_batches(operators: int, parallel: int) -> int:
    """Return how many batches to fit: enough to keep every task slot busy, few enough to be worth a task each."""
    return max(1, min(operators, max(parallel, -(-operators // OPERATORS_PER_BATCH))))


def fit_capacities(
    context: SparkContext, jobs: Sequence[Sequence[OperatorPoints]], batch_count: int, *, leaves_out: bool = True
) -> list[Fits]:
    """Return the fits of each job, of the points of its operators, in so many tasks.

    An operator whose fit fails is named in the log and has none. ``leaves_out`` says whether curves are also tried on
    points that were hidden from them.
    """
    batches: dict[int, list[OperatorPoints]] = {}
    for one in sorted((one for own in jobs for one in own), key=lambda one: (*one.job, one.operator)):
        batches.setdefault(hash_texts((*one.job, one.operator)) % batch_count, []).append(one)
    if not batches:
        return [{} for _ in jobs]
    spread = context.parallelize(list(batches.values()), len(batches))
    fitted = spread.flatMap(lambda batch: fit_batch(batch, leaves_out=leaves_out)).collect()
    fit_of = {(one.job, one.operator): each for one, each in fitted}
    return [{one.operator: fit_of[key] for one in own if (key := (one.job, one.operator)) in fit_of} for own in jobs]


def fit_batch(batch: Sequence[OperatorPoints], *, leaves_out: bool) -> Fitted:
    """Fit all operators at once; where that fails, one by one, so that one spoils no other."""
    made = work_with_fallback(
        batch, lambda own: fit_operators(own, leaves_out=leaves_out), lambda one: (*one.job, one.operator)
    )
    return [pair for own, fits in made for pair in zip(own, fits, strict=True)]
