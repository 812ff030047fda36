"""Every policy on the same load twice: from raw replies through the pipeline's code, and in a replay.

Both call one host (``models/hosting``); what they feed it with has nothing in common: the job is simulated by
``lab/simulation`` here and by ``lab/replay`` there, its windows are made from Flink's replies here and by
the replay's recorder there, its plans come from the plan stage here and from the replay's driver there.  So the test
compares every decision of the host, and fails when either side feeds it differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from planned_pipeline import PlanInputs, Planning
from simulated_pipeline import CLUSTER, WINDOW_S, Decided, Pipeline, SimulatedJob

from controller.view.plan_rows import PolicyMemory
from include.policy_catalogue import Decides, catalogue
from include.settings import Cluster, Settings, Steps
from lab.replay.candidate_policies import CandidatePolicy, build_candidates
from lab.replay.conditions import AT_ONCE, Conditions
from lab.replay.drivers import PolicyDriver
from lab.replay.replay_run import ReplayRun
from lab.replay.tick_snapshot import TickSnapshot
from lab.replay.workload import Workload
from lab.simulation.spec import JobSpec, OperatorSpec
from models.bundle.job_models import JobModels
from models.hosting.host import HostedPolicy, HostMemory, Plan, evaluate_hosted
from models.policies.evaluation.reactive_decision import ReactiveDecision
from models.policies.job_snapshot import Snapshot

START_S = 1_709_510_400 + 3600  # Monday 2024-03-04 01:00 UTC
HOURS = 5
STEPS = 30  # of the replay in a window
JOB = "branches-0"  # a replay adds the seed to the name of a job; both names draw the same random numbers
SPEC = JobSpec(
    f"{CLUSTER}/branches",
    (
        OperatorSpec("in", (), 4000.0, contention=0.0),
        OperatorSpec("a", ("in",), 180.0, contention=0.03, selectivity=1.5),
        OperatorSpec("b", ("in",), 90.0, contention=0.01, selectivity=0.2),
        OperatorSpec("join", ("a", "b"), 250.0, contention=0.02, selectivity=0.1),
        OperatorSpec("out", ("join",), 60.0, contention=0.0, selectivity=0.0),
    ),
    slots_max=32,
    capacity_noise=0.0,
    fetch_delay_s=0.0,
    failures_per_week=0.0,
)
QUIET = replace(AT_ONCE, rescale_downtime_s=(45.0, 45.0), failures_per_day=0, measurement_noise=0.0, capacity_noise=0.0)
CONDITIONS = Conditions(disturbances=QUIET)
AHEAD = {name for name, entry in catalogue().items() if entry.decides is not Decides.REACTS}
OF_EACH_KIND = {
    "conttune_a3", "dhalion", "dragster_saddle", "ds2", "flink_autoscaler", "mdp", "planner", "reactive", "rl",
}  # fmt: skip
"""The other policies are hosted in the same ways; they are asked in ``make test-long``."""
REPLANS = {name for name, entry in catalogue().items() if entry.decides is Decides.REPLANS}
REACTS = sorted(name for name, entry in catalogue().items() if entry.decides is Decides.REACTS)


def rates() -> np.ndarray:
    """Return (W,) records/s: a wave, a jump and a fall, constant within each window."""
    window = np.arange(HOURS * 3600 // WINDOW_S)
    load = 500.0 + 230.0 * np.sin(2 * np.pi * window / 60)
    load[12:24] *= 1.9
    return load


def settings_for(name: str) -> Settings:
    base = Settings()
    planner = base.planner.model_copy(update={"policies": {f"{CLUSTER}/{JOB}": name}})
    # The replay has no limit on what a single window may ask for.
    limits = base.limits.model_copy(update={"steps": Steps(up_max_share=1000.0)})
    clusters = {CLUSTER: Cluster(slots_max=SPEC.slots_max)}
    return base.model_copy(update={"planner": planner, "limits": limits, "clusters": clusters})


@dataclass
class Recorded:
    """Passes a driver's decisions on and keeps what was running at each tick."""

    driver: PolicyDriver[Any]
    plans: bool
    reads_models: bool = False
    running: list[Decided] = field(default_factory=list)
    inputs: dict[int, PlanInputs] = field(default_factory=dict)
    models: dict[int, JobModels | None] = field(default_factory=dict)

    def first_memory(self) -> Any:
        return self.driver.first_memory()

    def tick(self, snapshot: TickSnapshot, memory: Any) -> tuple[Mapping[str, int] | None, Any]:
        if self.plans and snapshot.plan_due:
            models, forecast = snapshot.models, snapshot.forecast
            self.inputs[snapshot.now_s] = PlanInputs(models, forecast, snapshot.trained_s, snapshot.ingested_s)
        if self.reads_models:
            self.models[snapshot.now_s] = snapshot.models
        self.running.append(Decided(snapshot.now_s, tuple(snapshot.running.values())))
        return self.driver.tick(snapshot, memory)


@dataclass
class Known:
    """What was known in a replay: at its plans, and to a policy that replans at each evaluation."""

    inputs: dict[int, PlanInputs]
    models: dict[int, JobModels | None]


@dataclass(frozen=True)
class Replayed:
    """A replay.

    Attributes:
        changes: that it made.
        first: the parallelism that it began with.
        known: what was known.
        decided: by its host.
    """

    changes: list[Decided]
    first: tuple[int, ...]
    known: Known
    decided: dict[int, dict[str, int] | None]


@cache
def replay(name: str) -> Replayed:
    """Replay the load under a policy, once."""
    load = np.repeat(rates(), STEPS)[:, None]
    workload = Workload(SPEC, START_S, 10, load)
    (candidate,) = build_candidates([name], workload, CONDITIONS)
    reads_models = name in REPLANS or catalogue()[name].reads_models
    recorded = Recorded(candidate.driver, name not in REACTS, reads_models)
    host = Host()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lab.replay.hosted_driver.evaluate_hosted", host)
        ReplayRun(workload, [CandidatePolicy(name, recorded)], [0], CONDITIONS).run()
    observed = recorded.running
    changes = [
        Decided(before.at_s, after.parallelism)
        for before, after in pairwise(observed)
        if before.parallelism != after.parallelism
    ]
    return Replayed(changes, observed[0].parallelism, Known(recorded.inputs, recorded.models), host.decided)


def pipeline(name: str, replayed: Replayed) -> list[Decided]:
    """Return the changes that the controller asked for.

    Models and forecasts are those of the replay, in which they come from the same functions as in the stages.
    """
    first, known = replayed.first, replayed.known
    job = SimulatedJob(replace(SPEC, name=JOB), np.array(first), START_S)
    run = Pipeline(job, settings_for(name), cooldown_s=CONDITIONS.limits.cooldown_s)
    planning = Planning(run, name, catalogue()[name].learns_nightly)
    load = rates()
    for rate in load:
        now_s = run.run_window(np.array([rate, *np.zeros(len(first) - 1)]))
        if now_s < START_S + WINDOW_S * (len(load) - 1):  # of the last change a replay shows nothing
            if now_s in known.inputs:
                planning.make(now_s, known.inputs[now_s])
            left = PolicyMemory(name, planning.memory) if name in REPLANS and planning.memory else None
            models = known.models.get(now_s)
            run.evaluate(now_s, plan=planning.plan, left=left, models=models)
    return run.decided


@dataclass
class Host:
    """The host in the place of itself: keeps what was decided at each time, None for what runs."""

    decided: dict[int, dict[str, int] | None] = field(default_factory=dict)

    def __call__(
        self, hosted: HostedPolicy, memory: HostMemory, now_s: int, job: Snapshot | None, plan: Plan | None
    ) -> tuple[ReactiveDecision, HostMemory]:
        decision, after = evaluate_hosted(hosted, memory, now_s, job, plan)
        running = {} if job is None else dict(job.running)
        wanted = None if decision.wanted is None else dict(decision.wanted)
        self.decided[now_s] = None if wanted == running else wanted
        return decision, after


@pytest.fixture
def of_controller(monkeypatch: pytest.MonkeyPatch) -> Host:
    """The controller's host."""
    result = Host()
    monkeypatch.setattr("controller.evaluation.evaluate_job.evaluate_hosted", result)
    return result


@pytest.mark.parametrize(
    "name", [one if one in OF_EACH_KIND else pytest.param(one, marks=pytest.mark.long) for one in sorted(catalogue())]
)
def test_a_policy_decides_the_same(name: str, of_controller: Host) -> None:
    replayed = replay(name)
    assert pipeline(name, replayed) == replayed.changes
    assert replayed.changes or name == "static"
    assert len(of_controller.decided) == HOURS * 3600 // WINDOW_S - 2  # not before the first window, nor after the last
    if name not in AHEAD:  # a plan that is followed is wanted in a replay for as long as it stands
        assert of_controller.decided == {at_s: replayed.decided[at_s] for at_s in of_controller.decided}


@pytest.mark.parametrize("name", ["ds2", "planner"])
def test_a_host_that_is_fed_differently_decides_otherwise(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that lacks the newest window."""
    replayed, whole = replay(name), Pipeline.observations
    monkeypatch.setattr(Pipeline, "observations", lambda self, now_s: whole(self, now_s - WINDOW_S))
    assert pipeline(name, replayed) != replayed.changes
