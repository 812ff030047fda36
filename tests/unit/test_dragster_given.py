"""Throughput functions and splitting weights of Dragster that a person gives: from the settings to the decision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from situations import make_situation

from include.domain.graph import JobGraph, Operator
from include.policy_parameters import read_parameters
from include.settings import SETTINGS_FILE_VARIABLE, Planner, Settings, SettingsError, load_settings
from lab.policies.dragster.dragster_memory import DragsterMemory
from lab.policies.dragster.given_network import MisfitError, apply_given
from lab.policies.dragster.network import demand, flow, network
from lab.policies.dragster.throughput_settings import GivenForm, GivenSplit, GivenThroughput
from models.bundle.job_models import JobModels, LatencyModel, RecoveryModel
from models.policies.observations import MEASURES, Observations
from models.policies.protocol import Situation
from models.policies.registry import policy
from models.scheduling.demand import SourceForecast

FORK = JobGraph((Operator("s"), Operator("a", ("s",)), Operator("b", ("a",)), Operator("c", ("a",))))
JOIN = JobGraph((Operator("l"), Operator("r"), Operator("join", ("l", "r"))))
PLAIN = "prior_deviation = 0.001\nmultiplier_weight = 0\n"  # without exploration, so that a decision can be computed


def situation(graph: JobGraph, received: list[float], capacity_of_a_task: list[float]) -> Situation:
    """Every operator with one task, each sending one record per record to each of its successors."""
    measures = {name: np.full((4, len(graph.names)), np.nan) for name in MEASURES}
    below = [max(sum(name in one.upstream for one in graph.operators), 1) for name in graph.names]
    measures["processing_rate_per_s"][:] = received
    measures["output_rate_per_s"][:] = np.array(received) * below
    measures["true_processing_rate_per_s"][:] = capacity_of_a_task
    measures["target_data_rate_per_s"][:, 0] = received[0]
    measures["pending_records"][:, 0] = 0.0
    observed = Observations(
        600 + 60 * np.arange(4), 60, np.ones((4, len(below)), np.int64), disturbed=np.zeros(4, bool), **measures
    )
    recovery = RecoveryModel(60.0, 5.0, 60.0, 5.0, 10.0, 4)
    return make_situation(
        as_of_s=840,
        graph=graph,
        parallelism=dict.fromkeys(graph.names, 1),
        models=JobModels({}, {}, recovery, LatencyModel(np.zeros(0), np.zeros(0))),
        forecast=SourceForecast(840, 600, {"s": np.full((4, 6), received[0])}),
        slots_max=10,
        options=Planner(horizon_h=1, bin_s=600),
        observations=observed,
    )


def loaded(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    (tmp_path / "settings.toml").write_text(text)
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(tmp_path / "settings.toml"))
    return load_settings()


def decided(settings: Settings, given: Situation, job: str = "prod/fork") -> tuple[dict[str, int], str, DragsterMemory]:
    """As the plan stage and the controller do it."""
    chosen = policy(settings.planner.policy, settings.parameters_of(settings.planner.policy, job))
    schedule, memory = chosen.decide(given, chosen.first_memory())
    (decision,) = schedule.decisions
    return dict(zip(schedule.operators, decision.step.parallelism_to.tolist(), strict=True)), decision.reason, memory


@pytest.mark.parametrize("name", ["dragster_saddle", "dragster_gradient"])
def test_a_given_function_reaches_the_decision_of_its_job_alone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100 records/s in; a task of b or c has 150.  With h_ab = 3 e, 300 arrive at b: 2 tasks."""
    settings = loaded(
        f'[planner]\npolicy = "{name}"\n[policies.{name}]\n{PLAIN}eta = 1\n'
        '[[planner.parameters."prod/fork".h]]\ni = "a"\nj = "b"\nk = 3.0\n',
        tmp_path,
        monkeypatch,
    )
    now = situation(FORK, [100.0, 100.0, 100.0, 100.0], [900.0, 900.0, 150.0, 150.0])
    assert decided(settings, now)[0] == {"s": 1, "a": 1, "b": 2, "c": 1}
    assert decided(settings, now, job="prod/other")[0] == {"s": 1, "a": 1, "b": 1, "c": 1}


def test_given_weights_reach_the_multipliers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eq. 4 and 15: a can send 100/s of 2 x 100, of which alpha_ab = 0.8 to b, which can do 50.

    l_b = (min(0.8 x 100, 100) - 50) / 100 and gamma = 1 in the first slot; l_c = (20 - 50) / 100 is below 0.
    """
    text = (
        f'[planner]\npolicy = "dragster_saddle"\n[policies.dragster_saddle]\n{PLAIN}'
        '[[policies.dragster_saddle.alpha]]\ni = "a"\nj = "b"\nalpha_ij = 0.8\n'
        '[[policies.dragster_saddle.alpha]]\ni = "a"\nj = "c"\nalpha_ij = 0.2\n'
    )
    now = situation(FORK, [100.0, 100.0, 100.0, 100.0], [900.0, 50.0, 50.0, 50.0])
    _, _, memory = decided(loaded(text, tmp_path, monkeypatch), now)
    assert memory.multipliers == pytest.approx({"a": 0.5, "b": 0.3, "c": 0.0})


def test_what_does_not_fit_the_job_leaves_it_alone_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[planner]\npolicy = "dragster_saddle"\n[[policies.dragster_saddle.h]]\ni = "mpa"\nk = 3.0\n'
    now = situation(FORK, [100.0, 100.0, 100.0, 100.0], [900.0, 900.0, 50.0, 50.0])
    wanted, reason, memory = decided(loaded(text, tmp_path, monkeypatch), now)
    assert wanted == dict.fromkeys(FORK.names, 1)
    assert "h is given for 'mpa', no operator of the job; operators that have one: 'a', 'b', 'c'" in reason
    assert memory == DragsterMemory()  # so that the same windows count once the settings are right


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ('h = [{ i = "a", k = -1 }]', "k of operator 'a' must be above 0"),
        ('h = [{ i = "a", k = {} }]', "k of operator 'a' must be above 0"),
        ('h = [{ i = "a", k = "much" }]', "h.0.k"),
        ('h = [{ i = "a" }]', "h.0.k"),
        ('h = [{ i = "a", k = 1, form = "square" }]', "h.0.form"),
        ('h = [{ i = "a", k = 1, form = "tanh" }]', "operator 'a': k1 belongs to form = tanh"),
        ('h = [{ i = "a", k = 1, k1 = 5 }]', "operator 'a': k1 belongs to form = tanh"),
        ('h = [{ i = "a", k = 1, weight = 5 }]', "h.0.weight"),
        ('h = [{ i = "a", k = 1 }, { i = "a", j = "b", k = 1 }]', "h of operator 'a' is given twice"),
        ('alpha = [{ i = "a", j = "b", alpha_ij = 0.8 }]', "alpha of operator 'a' adds up to 0.8"),
        ('alpha = [{ i = "a", j = "b", alpha_ij = 1.5 }]', "alpha.0.alpha_ij"),
        ('alpha = [{ i = "a", j = "b", alpha_ij = 0.5 }, { i = "a", j = "b", alpha_ij = 0.5 }]', "'b' is given twice"),
    ],
)
def test_settings_that_cannot_be_right_for_any_job_are_refused_by_name(
    given: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError) as refused:
        loaded(f"[policies.dragster_saddle]\n{given}\n", tmp_path, monkeypatch)
    assert named in str(refused.value)
    assert "dragster_saddle" in str(refused.value)


def test_the_three_forms_and_weights_by_name() -> None:
    """Eq. 2 at e = (100, 30), weights given by name in the other order than the graph's."""
    plain, weights = network(JOIN, {}), {"r": 2.0, "l": 0.5}
    sources = {"l": 100.0, "r": 30.0}

    def sink(**given: object) -> float:
        one = GivenThroughput("join", weights, **given)  # type: ignore[arg-type]
        return demand(apply_given(plain, [one], []), sources).sink

    assert sink() == pytest.approx(110.0)
    assert sink(form=GivenForm.MIN) == pytest.approx(50.0)
    assert sink(form=GivenForm.TANH, k1=1e9) == pytest.approx(1e9)  # saturated: k . e = 110 is in no unit of 1 / k1
    assert demand(plain, sources).sink == 130.0


def test_a_weight_splits_the_capacity_of_its_operator() -> None:
    net = apply_given(network(FORK, {}), [], [GivenSplit("a", "b", 0.75), GivenSplit("a", "c", 0.25)])
    result = flow(net, {"s": 100.0}, {"a": 120.0})
    assert (result.over["a", "b"], result.over["a", "c"]) == (90.0, 30.0)


@pytest.mark.parametrize(
    ("h", "alpha", "named"),
    [
        ([GivenThroughput("s", 1.0)], [], "'s', a source"),
        ([GivenThroughput("a", 1.0, j="x")], [], "'x', which is none of its successors: 'b', 'c'"),
        ([GivenThroughput("b", 1.0, j="c")], [], "the sink"),
        ([GivenThroughput("a", {"s": 1.0, "b": 1.0})], [], "its predecessors are 's'"),
        ([], [GivenSplit("x", "b", 1.0)], "alpha is given for 'x', no operator"),
        ([], [GivenSplit("a", "b", 1.0)], "its successors are 'b', 'c'"),
    ],
)
def test_a_misfit_is_named(h: list[GivenThroughput], alpha: list[GivenSplit], named: str) -> None:
    with pytest.raises(MisfitError, match=named):
        apply_given(network(FORK, {}), h, alpha)


def test_nothing_given_changes_nothing() -> None:
    net = network(FORK, {})
    assert apply_given(net, (), ()) == net
    assert read_parameters("dragster_saddle", {}).h == ()
