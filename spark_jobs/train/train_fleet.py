"""One training: fits and scores on the executors, a trial beside them, and the verdict of the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from include.settings import Settings
from include.stage_names import Stage
from include.utc import parse_utc
from include.version import stage_version
from models.bundle.fleet_bundle import FleetBundle, JobKey
from models.bundle.merging import merge_jobs
from models.training.calibration import Residuals, standardise_ahead
from models.training.fleet_bundle import list_fits
from models.training.gate import Gate, Verdict, warn_of_errors
from models.training.job_facts import JobEstimates
from models.training.job_gate import JobVerdict, ModelChoice, apply_orders, judge_jobs, judge_with_jobs
from models.training.job_tests import find_since
from models.training.job_windows import KnownOperator
from models.training.train_job import LearnedJob, with_intervals
from spark_jobs.session import threads
from spark_jobs.train import training_data as data
from spark_jobs.train.build_bundle import AssembledBundle, assemble
from spark_jobs.train.fits import count_batches, fit_capacities
from spark_jobs.train.forward_scores import ForwardScores, capacity_errors, events_before, score_recoveries_forward
from spark_jobs.train.gate_criteria import list_criteria
from spark_jobs.train.holdout_scores import score_capacities, score_latencies
from spark_jobs.train.interval_scores import coverage_measures, measure_coverage
from spark_jobs.train.job_errors import drop_jobs, list_job_errors
from spark_jobs.train.judged_rows import held_rows, held_window_rows, hour_rows
from spark_jobs.train.learn_jobs import LearnTask, learn_jobs
from spark_jobs.train.recovery_scores import predict_recoveries
from spark_jobs.train.training_events import list_spans
from spark_jobs.train.training_measures import TrainingScores, gate_measures, list_measures


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """Everything about one training, before it is logged.

    Attributes:
        assembled: the bundle and its parts.
        scores: held-back errors.
        measured: metrics by name.
        gate: the verdict with its criteria.
        result: the row of gold.model_versions without as_of, and ``curves``.
        coverage: rows of interval_scores.measure_coverage.
        champion: the model in use before; None before the first.
        bundle: what is registered: the fitted models, and those of other versions of jobs that have no new ones.
        judged: what becomes of every job.
    """

    assembled: AssembledBundle
    scores: TrainingScores
    measured: dict[str, float]
    gate: Gate
    result: dict[str, object]
    coverage: pd.DataFrame
    champion: FleetBundle | None
    bundle: FleetBundle
    judged: Sequence[JobVerdict]


@dataclass(frozen=True, slots=True)
class ModelPins:
    """What persons have ordered of single jobs.

    Attributes:
        sources: job -> number of the registered version whose models it shall have (None: none of them), and why.
        bundles: of those numbers.
    """

    sources: Mapping[JobKey, tuple[int | None, str]] = field(default_factory=dict)
    bundles: Mapping[int, FleetBundle] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trainer:
    """What the fits of a training share.

    Attributes:
        inputs: what was read.
        settings: of the run.
        operators: of the latest graph of every job.
        batch_count: of operators that are fitted together.
    """

    inputs: data.TrainingInputs
    settings: Settings
    operators: Mapping[JobKey, tuple[KnownOperator, ...]]
    batch_count: int

    def predict(self, events: pd.DataFrame, jobs: Sequence[JobEstimates], bundle: FleetBundle) -> pd.DataFrame:
        """Return what a bundle predicts of events, by rows of recovery_scores.predict_recoveries."""
        return predict_recoveries(
            self.inputs.observations.sparkSession.sparkContext,
            events,
            graphs=self.operators,
            shares={one.job: one.source_rates for one in jobs if one.source_rates},
            bundle=bundle,
            caught_up_lag_s=self.settings.ingest.caught_up_lag_s,
        )

    def fit(
        self, model_version: str, jobs: Sequence[JobEstimates], events: pd.DataFrame, *, leaves_out: bool = True
    ) -> AssembledBundle:
        """Fit every operator and job and put the bundle together; its capacities' intervals are not calibrated yet.

        With ``leaves_out`` curves are also tried on points that were hidden from them.
        """
        context = self.inputs.observations.sparkSession.sparkContext
        fits = fit_capacities(context, [one.points for one in jobs], self.batch_count, leaves_out=leaves_out)
        assembled = assemble(model_version, jobs, fits, events, self.operators)
        return replace(assembled, recoveries=self.predict(assembled.events, jobs, assembled.bundle))

    def finish(self, fitted: AssembledBundle, residuals: Residuals) -> AssembledBundle:
        """Return the fit with the intervals that its residuals and its events tell."""
        errors = fitted.recoveries.sort_values("started_at")["standardised"].to_numpy(float)
        bundle = with_intervals(fitted.bundle, fitted.fits, residuals, errors)
        return replace(fitted, bundle=replace(bundle, placed=data.placed_operators(self.inputs.graphs)))

    def score_forward(
        self, learnt: Sequence[LearnedJob], events: pd.DataFrame, champion: FleetBundle | None, since: datetime | None
    ) -> ForwardScores:
        """Train a trial on what came before the last hours and score it, and the champion, on those."""
        if since is None:
            return ForwardScores.none()
        before = [one.before for one in learnt if one.before is not None]
        fitted = self.fit("trial", before, events_before(events, since), leaves_out=False)
        trial = self.finish(fitted, Residuals.join(())).bundle
        fits = {(cluster, job): own for (cluster, job, _), own in zip(fitted.bundle.index, fitted.fits, strict=True)}
        later = events[pd.to_datetime(events["started_at"], utc=True) >= since]
        theirs = self.predict(later, before, champion) if champion else None
        return ForwardScores(
            since,
            capacity_errors(hour_rows(learnt), trial, champion),
            score_recoveries_forward(self.predict(later, before, trial), theirs),
            Residuals.join(standardise_ahead(one.tests, fits.get(one.facts.job, {})) for one in learnt),
        )


def train_fleet(
    inputs: data.TrainingInputs,
    settings: Settings,
    model_version: str,
    content: data.DataSummary,
    *,
    champion: FleetBundle | None,
    forecasts: pd.DataFrame,
    trained_at: datetime | None = None,
    orders: ModelPins | None = None,
) -> TrainingResult:
    """Fit, score and judge beside the champion of ``trained_at``, with what persons ordered; None before the first."""
    spark = inputs.observations.sparkSession
    events, as_of_s = inputs.events, inputs.as_of.timestamp()
    champion_s = None if trained_at is None else trained_at.timestamp()
    first_s = parse_utc(str(content.trained_from)).timestamp()
    since_s = find_since(first_s, as_of_s, champion_s, settings.training)
    task = LearnTask(settings, as_of_s, since_s, data.known_operators(inputs.graphs), list_spans(events))
    learnt, events = learn_jobs(inputs.observations, task, events)
    trainer = Trainer(
        inputs,
        settings,
        task.operators,
        count_batches(content.operators, spark.sparkContext.defaultParallelism),
    )
    since = None if since_s is None else datetime.fromtimestamp(since_s, UTC)
    with threads(spark) as pool:
        ahead = pool.submit(trainer.score_forward, learnt, events, champion, since)
        fitted = trainer.fit(model_version, [one.facts for one in learnt], events)
        forward = ahead.result()
    assembled = trainer.finish(fitted, forward.residuals)
    scores = TrainingScores(
        score_capacities(held_rows(learnt), assembled.bundle, champion),
        score_latencies(held_window_rows(learnt), assembled.bundle, champion),
        assembled.recoveries,
        forward,
    )
    orders = orders or ModelPins()
    judged = judge_each_job(assembled.bundle, settings, scores, champion, orders)
    gate = judge_fleet(content, settings, scores, forecasts, champion, judged=judged)
    made = choose_models(assembled.bundle, champion, judged, gate, orders)
    coverage = measure_coverage(list_fits(assembled.fits), forward.residuals)
    measured = {**list_measures(assembled, scores), **coverage_measures(coverage), **gate_measures(gate)}
    gate = warn_of_errors(gate, {name: measured[f"{name}_mape"] for name in ("capacity", "recovery", "latency")})
    errors = ("capacity_mape", "recovery_mape", "latency_mape", "champion_capacity_mape")
    result: dict[str, object] = {
        "model_version": model_version,
        "trained_from": content.trained_from,
        "jobs": len(made.index),
        "operators": len(assembled.operators),
        "observations": content.rows,
        "observations_hash": content.hash,
        **{name: measured[name] if np.isfinite(measured[name]) else None for name in errors},
        "champion_before": champion.model_version if champion else None,
        "gate": str(gate.verdict),
        "gate_detail": gate.detail,
        "compared": gate.compared,
        "code_version": stage_version(Stage.TRAIN),
        "curves": int(measured["curves"]),
        "jobs_kept": sum(one != model_version for one in made.versions_of_jobs().values()),
        "jobs_left_out": len(set(assembled.bundle.jobs()) - set(made.jobs())),
    }
    return TrainingResult(assembled, scores, measured, gate, result, coverage, champion, made, judged)


def judge_each_job(
    fitted: FleetBundle, settings: Settings, scores: TrainingScores, champion: FleetBundle | None, orders: ModelPins
) -> list[JobVerdict]:
    """Judge every job of a challenger by its own errors, and by what persons have ordered."""
    jobs, theirs = fitted.jobs(), set(champion.jobs()) if champion else set()
    known = np.array([job in theirs for job in jobs], bool)
    judged = judge_jobs(jobs, known, list_job_errors(scores, jobs), settings.training.gate_job_tolerance)
    return apply_orders(judged, orders.sources)


def choose_models(
    fitted: FleetBundle, champion: FleetBundle | None, judged: Sequence[JobVerdict], gate: Gate, orders: ModelPins
) -> FleetBundle:
    """Return the bundle that is registered.

    A refused one has the models that were refused, so that a person who approves it has what the gate has judged.
    """
    is_refused = gate.verdict is Verdict.FAILED
    sources: dict[JobKey, FleetBundle | None] = {}
    for one in judged:
        if one.choice is ModelChoice.NEW or (is_refused and one.is_worse):
            continue
        chosen = champion if one.source is None else orders.bundles[one.source]
        sources[one.job] = chosen if one.choice is ModelChoice.KEPT else None
    return merge_jobs(fitted, sources)


def judge_fleet(
    content: data.DataSummary,
    settings: Settings,
    scores: TrainingScores,
    forecasts: pd.DataFrame,
    champion: FleetBundle | None,
    *,
    judged: Sequence[JobVerdict],
) -> Gate:
    """Judge the challenger by everything that plans use, on the jobs that have new models."""
    scores = drop_jobs(scores, {one.job for one in judged if one.choice is not ModelChoice.NEW})
    known = set(champion.jobs()) if champion else set()
    knows = len(known & content.running)
    criteria = list_criteria(
        scores.capacity,
        scores.latency,
        scores.forward,
        forecasts,
        has_champion=knows > 0,
        tolerance=settings.training.gate_tolerance,
    )
    return judge_with_jobs(
        criteria,
        judged,
        has_champion=champion is not None,
        champion_knows=knows,
        worse_max=settings.training.gate_worse_jobs_max,
    )
