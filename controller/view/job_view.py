"""What an evaluation of one job starts from, and what is kept of the job from one evaluation to the next."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from controller.view.plan_rows import JobPlan, PolicyMemory
from include.domain.graph import JobGraph
from include.domain.operator_matching import PlacedOperator
from include.settings import Settings
from include.utc import HOUR_S
from models.bundle.job_models import JobModels, RecoveryModel
from models.control.state import Origin
from models.policies.job_snapshot import Snapshot, draw_seed
from models.policies.observations import Observations
from models.polling.seen_job import PolledJob
from models.recovery.recovery_model import UNTRAINED
from models.scheduling.slot_bounds import SlotBounds

FRESH_TURNS = 2  # metrics are fresh for so many evaluations: one poll may come late or fail


class NotObservedError(Exception):
    """Nothing fresh is known of a job; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class ActiveTarget:
    """What a job should run at until something else is wanted, it expires, or the job runs so.

    Attributes:
        wanted: operator -> parallelism.
        origin, step_id, reason, valid_until_s: see :class:`models.control.state.Intention`.
        held_back: why it is not to be sent now; empty where it is.
        has_band: whether the evaluation has held it against a band of its own.
        falls_behind: whether the job did so then.
    """

    wanted: Mapping[str, int]
    origin: Origin
    step_id: str
    reason: str
    valid_until_s: float
    held_back: str = ""
    has_band: bool = False
    falls_behind: bool = False


@dataclass(frozen=True, slots=True)
class EvaluationState:
    """What is kept of a job from one evaluation to the next.

    Attributes:
        plan_as_of_s: the newest plan that the policy knows.
        standing: None to leave the job as it is.
        remembered: of a policy that reacts or replans; None before its first evaluation.
        operators: of the job, by whose names all of this is kept; empty while they are not known.
        remark: what a person should know of a job that is left as it is.
    """

    plan_as_of_s: float | None = None
    standing: ActiveTarget | None = None
    remembered: PolicyMemory | None = None
    operators: tuple[PlacedOperator, ...] = ()
    remark: str = ""

    def is_changed_from(self, before: EvaluationState) -> bool:
        """Whether something differs that a controller which starts again cannot find out from windows and plans."""
        return replace(self, remark="") != replace(before, remark="")


@dataclass(frozen=True, slots=True)
class JobView:
    """What an evaluation of a job starts from.

    Attributes:
        cluster, job: its name.
        seen: of the last polls; None when no poll of it is kept.
        observations: its windows, in the order of its graph; None without any.
        looks: its last minutes as windows of their own, between two evaluations; None at one, and without any.
        graph: as last ingested, for a job whose plan no kept reply holds.
        plan: the newest one; None before the first.
        models: of the job; None without a champion that knows it.
        left: what the policy of the newest plan left for the evaluations until the next; None when it was refused.
        slots_wait_s: until slots come that a rise of it lacks, as learnt of its cluster; None before any came.
        has_failed: whether it has ended by a failure, and no other of its name runs.
    """

    cluster: str
    job: str
    seen: PolledJob | None = None
    observations: Observations | None = None
    looks: Observations | None = None
    graph: JobGraph | None = None
    plan: JobPlan | None = None
    models: JobModels | None = None
    left: PolicyMemory | None = None
    slots_wait_s: float | None = None
    has_failed: bool = False

    @property
    def recovery(self) -> RecoveryModel:
        """How long its rescales take."""
        return UNTRAINED if self.models is None else self.models.recovery


def take_snapshot(view: JobView, settings: Settings, now_s: int) -> Snapshot:
    """Return what is seen of a job.

    Raises:
        NotObservedError: its metrics are not fresh, or are not those of the graph that is known.
    """
    observed, oldest_s = view.seen, now_s - FRESH_TURNS * settings.planner.timing.apply_every_s
    if observed is None or observed.polled_at_ms < 1000 * oldest_s:
        raise NotObservedError("no poll of it lately")
    graph = observed.graph or view.graph
    if graph is None:
        raise NotObservedError("its graph is not known")
    if (observed.is_up or observed.restarting) and set(observed.running) != set(graph.names):
        raise NotObservedError("its operators are not those of its graph")
    graph = _limit_sources(graph, view, settings)
    observations = view.observations
    if observations is None or observations.parallelism.shape[1] != len(graph.operators):
        observations = Observations.nothing(len(graph.operators), settings.cluster(view.cluster).window_s)
    schedules = settings.job_limits(view.cluster, view.job).schedules
    options = settings.planner.for_job(view.cluster, view.job)
    if view.slots_wait_s is not None:
        options = options.with_values({"timing.slots_wait_s": view.slots_wait_s})
    return Snapshot(
        now_s=now_s,
        graph=graph,
        running=observed.running,
        up=observed.is_up,
        restarting=observed.restarting,
        observations=observations,
        slots_max=settings.cluster(view.cluster).slots_max,
        options=options,
        models=view.models,
        bounds=SlotBounds.of(schedules, now_s, now_s + HOUR_S * settings.planner.horizon_h),
        taskmanager_slots=settings.cluster(view.cluster).taskmanager_slots,
        seed=draw_seed(f"{view.cluster}/{view.job}", now_s),
    )


def _limit_sources(graph: JobGraph, view: JobView, settings: Settings) -> JobGraph:
    """Return the graph with the partitions of its sources: of the settings, else as last ingested."""
    reported = {} if view.graph is None else {one.name: one.partitions for one in view.graph.operators}
    ingested = {name: partitions for name, partitions in reported.items() if partitions is not None}
    vertex_ids = {} if view.seen is None else view.seen.vertex_ids
    names = dict.fromkeys(graph.names, "") | dict(vertex_ids)
    return graph.with_partitions(ingested | settings.cluster(view.cluster).partitions_of(view.job, names))


def name_step(view: JobView, running: Mapping[str, int], wanted: Mapping[str, int]) -> str:
    """Return the id of a step that no plan has: the same change has the same for as long as it is wanted.

    A person who has said yes to it has said so until something else is wanted.
    """
    job_id = view.seen.job_id if view.seen is not None else ""
    parts = (view.cluster, view.job, job_id, repr(sorted(running.items())), repr(sorted(wanted.items())))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
