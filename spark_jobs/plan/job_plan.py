"""Planning one job: from its state and forecast to rows, or to one row that says why not."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from pyspark.broadcast import Broadcast

from include.domain.graph import GraphError, JobGraph
from include.domain.operator_matching import follow_names
from include.flink.job_states import BATCH
from include.settings import Settings
from include.short_names import shorten_name
from include.tables.plan_row import PlanRow
from include.utc import HOUR_S
from models.arrays import Floats, Ints
from models.bundle.fleet_bundle import BundleError, FleetBundle
from models.bundle.job_models import JobModels
from models.capacity.fleet_prior import FleetPrior
from models.capacity.interval_width import widen_intervals
from models.capacity.partial_pooling import pool_models
from models.hosting.memories import store
from models.policies.immediate_change import add_expectations, name_schedules
from models.policies.job_snapshot import Snapshot, draw_seed
from models.policies.protocol import Policy, Schedule, Situation
from models.policies.registry import policy
from models.policies.renamed_memory import find_operators, rename_operators
from models.scheduling.demand import DemandError, SourceForecast
from models.scheduling.slot_bounds import SlotBounds
from models.scheduling.slot_prices import SlotPrices, weight_of
from spark_jobs.by_job import Columns
from spark_jobs.newest_rows import OF_EVENTS, QUANTILES
from spark_jobs.plan.model_trust import ModelTrust
from spark_jobs.plan.new_jobs import begin_states, past_loads_of
from spark_jobs.plan.plan_rows import Row, refused_row, schedule_rows
from spark_jobs.plan.refusals import PlanRefusal, PlanRefusedError
from spark_jobs.plan_inputs.job_state import JobState, find_working, limited_graph_of
from spark_jobs.plan_inputs.policy_memory import recall
from spark_jobs.plan_inputs.windows import observations_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlanTask:
    """What every job's planning shares; shipped to the executors once.

    Attributes:
        settings: of the run.
        as_of: the moment of planning.
        bundle: models of the fleet; None when there is no champion.
        no_champion: why there is none.
        trust: in the champion.
        offers: cluster -> prices that keep its budget; empty without budgets.
        shared: what all rows of the plan have.
        code_versions: policy -> version of the code that decides.
    """

    settings: Settings
    as_of: datetime
    bundle: Broadcast[FleetBundle] | None
    trust: ModelTrust = field(default_factory=ModelTrust)
    offers: Mapping[str, SlotPrices] = field(default_factory=dict)
    no_champion: str = "no training has made one yet; run the train stage"
    shared: PlanRow = field(default_factory=PlanRow)
    code_versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def as_of_s(self) -> int:
        """Epoch seconds of the moment of planning, rounded up: nothing is placed before it."""
        return math.ceil(self.as_of.timestamp())


def plan_jobs(task: PlanTask, known: Iterable[JobState]) -> Iterator[Row]:
    """Yield the rows of jobs, given everything that is known."""
    return (row for state in begin_states(task.settings, known) for row in plan_job(task, state))


def plan_job(task: PlanTask, state: JobState) -> list[Row]:
    """Return the rows of one job: its steps, or one that holds, or one that is refused."""
    name = task.settings.planner.policy_of(state.cluster, state.job)
    shared = replace(
        task.shared,
        policy=name,
        code_version=task.code_versions.get(name),
        cluster=state.cluster,
        job=state.job,
        job_id=state.job_id,
        forecast_version=state.forecast_version,
        observations_until_s=state.observed_until_s,
        warning=task.trust.warning,
    )
    memory = None
    try:
        schedule, memory = _decide(task, name, situation_of(task, state), state)
        rows = schedule_rows(shared, task.as_of, schedule)
    except PlanRefusedError as refused:
        rows = [refused_row(shared, task.as_of, refused, state)]
    except Exception as error:  # what is wrong with one job must not keep the others from their plans
        log.exception("inputs of %s/%s", state.cluster, shorten_name(state.job))
        unread = PlanRefusedError(
            PlanRefusal.INPUTS_FAILED, f"its inputs cannot be used: {type(error).__name__}: {error}"
        )
        rows = [refused_row(shared, task.as_of, unread, state)]
    of_plan = {"as_of": task.as_of, "date": task.as_of.date()}
    made = [row.to_columns() | of_plan for row in rows]
    made[0]["memory"] = memory
    return made


def _check_state(task: PlanTask, state: JobState) -> None:
    if state.observed_after_s is not None:
        raise PlanRefusedError(
            PlanRefusal.PAST_HORIZON, f"{state.cluster} was observed after the horizon ended; plans are for the future"
        )
    if state.ended_at_s is not None:
        ended = f"it has ended ({state.state} at {datetime.fromtimestamp(state.ended_at_s, UTC):%Y-%m-%d %H:%M} UTC)"
        raise PlanRefusedError(PlanRefusal.JOB_ENDED, f"{ended}: there is nothing to plan until it runs again")
    if state.job_type == BATCH:
        raise PlanRefusedError(
            PlanRefusal.BATCH_JOB, "Flink runs it as a batch job, which chooses its parallelism itself"
        )
    if not state.operators:
        raise PlanRefusedError(
            PlanRefusal.NO_GRAPH,
            "no reply shows its graph: it is polled again until one does; with metrics of Prometheus set "
            f"clusters.{state.cluster}.rest_url or clusters.{state.cluster}.prometheus.graphs",
        )
    if not find_working(state.operators):
        raise PlanRefusedError(
            PlanRefusal.JOB_ENDED, "all of its sources have come to their end, and it takes in nothing more"
        )
    known_until_s = min(state.seen_at_s or 0, state.observed_until_s or 0)
    _check_age(task, PlanRefusal.STALE_METRICS, "metrics", known_until_s)
    unknown = sorted(find_working(state.operators).keys() - state.parallelism.keys())
    if unknown:
        raise PlanRefusedError(PlanRefusal.STALE_METRICS, f"the running parallelism of {unknown} was not seen")


def _check_loads(state: JobState, graph: JobGraph) -> None:
    """Refuse a job of which a source has no forecast, since nothing tells what it takes in."""
    bins = {} if state.bins is None else _under_present_names(state, state.bins)
    foreseen = set(bins["operator"].tolist()) if bins else set()
    unseen = sorted((set(graph.sources) & set(state.unseen_sources)) - foreseen)
    if unseen:
        raise PlanRefusedError(
            PlanRefusal.LOAD_UNSEEN,
            f"no counter tells what {', '.join(map(shorten_name, unseen))} takes in, so it has no load to forecast; "
            "`tidewise doctor` lists the counters of each source",
        )


def _check_age(task: PlanTask, refusal: PlanRefusal, what: str, made_s: int) -> None:
    age_h, most_h = (task.as_of_s - made_s) / 3600, task.settings.planner.max_input_age_h
    if age_h > most_h:
        age = f"{age_h:.1f} h old" if made_s else "not there at all"
        raise PlanRefusedError(refusal, f"{what} are {age}, more than planner.max_input_age_h = {most_h:g}")


def situation_of(task: PlanTask, state: JobState) -> Situation:
    """Return what a policy may look at.

    Raises:
        PlanRefusedError: the job cannot be planned for.
    """
    _check_state(task, state)
    try:
        graph = limited_graph_of(state.operators, task.settings.cluster(state.cluster), state.job)
    except GraphError as error:
        raise PlanRefusedError(PlanRefusal.UNKNOWN_OPERATOR, str(error)) from error
    _check_loads(state, graph)
    models = _models(task, state, graph)
    if state.bins is None or state.forecast_as_of_s is None:
        raise PlanRefusedError(
            PlanRefusal.NO_FORECAST, "no forecast of its sources within two days; run the forecast stage"
        )
    _check_age(task, PlanRefusal.STALE_FORECAST, "forecasts", state.forecast_as_of_s)
    job = Snapshot(
        now_s=task.as_of_s,
        graph=graph,
        running=state.parallelism,
        up=True,
        observations=observations_of(graph, state.windows),
        slots_max=task.settings.cluster(state.cluster).slots_max,
        options=task.settings.planner.for_job(state.cluster, state.job),
        models=models,
        bounds=_bound_slots(task, state),
        taskmanager_slots=task.settings.cluster(state.cluster).taskmanager_slots,
        seed=draw_seed(f"{state.cluster}/{state.job}", task.as_of_s),
    )
    forecast = _forecast(graph, _under_present_names(state, state.bins))
    offer = task.offers.get(state.cluster, SlotPrices.free())
    priority = task.settings.job_limits(state.cluster, state.job).priority
    past_loads = None if state.past_loads is None else past_loads_of(state.past_loads)
    return Situation(job, forecast, offer.weigh(weight_of(priority)), past_loads)


def _bound_slots(task: PlanTask, state: JobState) -> SlotBounds:
    until_s = task.as_of_s + HOUR_S * task.settings.planner.horizon_h
    return SlotBounds.of(task.settings.job_limits(state.cluster, state.job).schedules, task.as_of_s, until_s)


def _models(task: PlanTask, state: JobState, graph: JobGraph) -> JobModels:
    if task.bundle is None:
        raise PlanRefusedError(PlanRefusal.NO_MODEL, f"no champion model: {task.no_champion}")
    try:
        models: JobModels = task.bundle.value.for_job(state.cluster, state.job, state.placed)
    except BundleError as error:
        raise PlanRefusedError(PlanRefusal.NO_MODEL, str(error)) from error
    if task.settings.planner.capacity.fleet_prior:
        slots_max = task.settings.cluster(state.cluster).slots_max
        models = pool_models(models, graph, FleetPrior.from_arrays(task.bundle.value.arrays), slots_max)
    if not models.capacity.keys() & state.parallelism.keys():
        raise PlanRefusedError(
            PlanRefusal.NO_MODEL, f"none of its operators has a capacity model: {_why_unknown(models, state)}"
        )
    return widen_intervals(models, task.trust.interval_factor)


def _why_unknown(models: JobModels, state: JobState) -> str:
    if not state.is_busy_measured:
        return "their busy time was never measured"
    if not models.selectivity.keys() & state.parallelism.keys():
        return "they are new since the training; the next one learns them"
    return "no window that a training can use has both their busy time and a rate at which they processed"


def _under_present_names(state: JobState, bins: Columns) -> Columns:
    """Return a forecast with the names that its sources have now; those that have gone keep theirs."""
    names = follow_names(set(bins["operator"].tolist()), state.every_version)
    gone = dict.fromkeys(set(bins["operator"].tolist()) - names.keys(), "")
    return {**bins, "operator": np.array([{**names, **gone}[name] for name in bins["operator"].tolist()], object)}


def _forecast(graph: JobGraph, bins: Columns) -> SourceForecast:
    # A source that was renamed or removed since the forecast is no part of the load any more.
    bins = {name: values[np.isin(bins["operator"], graph.sources)] for name, values in bins.items()}
    missing = sorted(set(graph.sources) - set(bins["operator"].tolist()))
    if missing:
        raise PlanRefusedError(PlanRefusal.NO_FORECAST, f"no forecast of source {missing}")
    order = np.argsort(bins["bin_start_s"], kind="stable")
    places = {name: order[bins["operator"][order] == name] for name in graph.sources}
    starts, bin_s = bins["bin_start_s"], int(bins["bin_s"][0])
    first = starts[places[graph.sources[0]]]
    if any(not np.array_equal(first[0] + bin_s * np.arange(len(first)), starts[at]) for at in places.values()):
        raise PlanRefusedError(PlanRefusal.NO_FORECAST, "bins of the forecast are missing or doubled")
    levels = np.array([bins[name] for name in QUANTILES], float)  # (L, bins of all sources)
    quantiles = {name: levels[:, at] for name, at in places.items()}
    fallback = min(filter(None, bins["fallback"].tolist()), default=None)
    try:
        return SourceForecast(int(first[0]), bin_s, quantiles, fallback, **_read_events(bins, places))
    except DemandError as error:
        raise PlanRefusedError(PlanRefusal.NO_FORECAST, str(error)) from error


def _read_events(bins: Columns, places: Mapping[str, Ints]) -> dict[str, dict[str, Floats]]:
    """Return what of the quantiles is that of events; nothing of a forecast without any."""
    made = [np.array(bins[name], float) for name in OF_EVENTS if name in bins]  # a forecast may be of before them
    if not made or not np.isfinite(made[0]).any():
        return {}
    filled = [np.where(np.isfinite(values), values, usual) for values, usual in zip(made, (1.0, 0.0), strict=True)]
    names = ("factor", "spread")
    return {
        name: {source: values[at] for source, at in places.items()} for name, values in zip(names, filled, strict=True)
    }


def _with_present_names(state: JobState, memory: Any) -> Any:
    """Return what a policy remembers under the names that the job's operators have now."""
    if not state.versions:
        return memory
    ever = {operator.name for version in state.every_version for operator in version}
    known = find_operators(memory, ever)
    return rename_operators(memory, follow_names(known, state.every_version), known)


def recall_memory(task: PlanTask, name: str, state: JobState) -> tuple[Policy[Any], Any]:
    """Return a job's policy and what it remembers, under the names that the job's operators have now."""
    chosen = policy(name, task.settings.parameters_of(name, f"{state.cluster}/{state.job}"))
    return chosen, _with_present_names(state, recall(chosen, name, state.memory, state.memory_policy))


def _decide(task: PlanTask, name: str, situation: Situation, state: JobState) -> tuple[Schedule, str | None]:
    """Return the schedule, and the policy's memory as text; null for a policy without one."""
    try:
        chosen, remembered = recall_memory(task, name, state)
        schedule, memory = chosen.decide(situation, remembered)
        return name_schedules(add_expectations(schedule, situation), situation.bounds), store(name, memory)
    except DemandError as error:
        raise PlanRefusedError(PlanRefusal.STALE_FORECAST, str(error)) from error
    except GraphError as error:
        raise PlanRefusedError(PlanRefusal.UNKNOWN_OPERATOR, str(error)) from error
    except Exception as error:  # one job's policy must not keep the others from their plans
        log.exception("policy %s of %s/%s", name, state.cluster, state.job)
        raise PlanRefusedError(PlanRefusal.POLICY_FAILED, f"policy {name}: {type(error).__name__}: {error}") from error
