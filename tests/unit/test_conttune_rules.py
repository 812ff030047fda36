"""ContTune's parts on published numbers: surrogate, acquisition, known region, Big phase, Top-K, controller."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from capacity_points import add_observation
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.papers.conttune.worked_example import known_share
from lab.policies.conttune.controller import ProvisionState, is_worth_restart, provision
from lab.policies.conttune.tuning_loop import big_step
from lab.policies.tuning.acquisition_functions import acquire, improvement
from lab.policies.tuning.small import OperatorProblem, Suggestion, propose
from lab.policies.tuning.tuning_options import Acquisition
from lab.policies.tuning_thresholds import Thresholds
from models.capacity.capacity_samples import pack
from models.capacity.gp import predict, whiten
from models.policies.tuning.capacity_history import History, ObservedCapacity
from models.policies.tuning.reading import backpressure_share

PUBLISHED = json.loads(Path("data/papers/conttune.json").read_text(encoding="utf-8"))


def history(capacities: dict[int, float]) -> History:
    result: History = ()
    for parallelism, capacity in capacities.items():
        result = add_observation(result, parallelism, capacity)
    return result


def q1() -> History:
    result: History = ()
    for parallelism, samples in PUBLISHED["q1_abilities_per_s"].items():
        for sample in samples:
            result = add_observation(result, int(parallelism), sample)
    return result


def test_the_published_gaussian_process_and_its_choice_for_four_million_records() -> None:
    """README: l = 2.25, signal sd 492,133.45, zero mean, on the means of up to five samples; p_acq = 11, d = 1."""
    known, reference = q1(), PUBLISHED["gp_q1"]
    assert [len(one.recent_per_s) for one in known][-6:] == [3, 5, 5, 5, 5, 1]
    at = np.array([one.parallelism for one in known])
    means = np.array([one.capacity_per_s for one in known])
    samples = pack(np.zeros(13, int), at, np.ones(13), means, np.zeros(13))
    ratio = np.array([reference["signal_sd_per_s"] ** 2 / 1e-8])
    spectrum = whiten(samples, np.array([reference["length_scale"]]))
    mean, sd = predict(samples, spectrum, np.arange(1, 27.0), ratio=ratio, slope=np.zeros(1), noise_variance=np.ones(1))
    np.testing.assert_allclose(mean[0], reference["mean_per_s_p1_to_p26"], rtol=1e-3)
    p_acq = acquire(mean, sd, np.array([4e6]), np.array([26]), Acquisition.FEASIBLE)
    assert p_acq.tolist() == [11]
    assert min(abs(at - 11)) == 1


def test_the_projects_surrogate_chooses_as_the_readme_does() -> None:
    asked = OperatorProblem(q1(), 4e6, 1, 529_573.0, p_max=26)
    assert propose([asked]) == [Suggestion(11, "model")]
    assert propose([asked], alpha=0)[0].how == "linear"  # 11 was never observed


def test_fig_3() -> None:
    observed = (1, 4, 9, 10, 15)
    assert known_share(observed, alpha=2, p_max=15) == (12, 0.8)
    line = history({p: 100.0 * p for p in observed})
    inside, outside = (
        OperatorProblem(line, 1300.0, 4, 400.0, p_max=15),
        OperatorProblem(line, 1250.0, 15, 1500.0, p_max=15),
    )
    assert propose([inside], alpha=2) == [Suggestion(13, "model")]
    assert propose([outside], alpha=1) == [Suggestion(13, "linear")]


def test_beyond_p_max_and_without_history_the_step_is_linear_and_without_a_rate_there_is_none() -> None:
    line = history({2: 200.0})
    assert propose([OperatorProblem(line, 950.0, 2, 200.0, p_max=2)]) == [Suggestion(10, "linear")]
    assert propose([OperatorProblem((), 950.0, 2, 200.0, p_max=2)]) == [Suggestion(10, "linear")]
    assert propose([OperatorProblem(line, math.nan, 2, 200.0, p_max=2)]) == [Suggestion(2, "kept")]
    assert propose([OperatorProblem((), 950.0, 2, math.nan, p_max=2)]) == [Suggestion(2, "kept")]
    assert propose([OperatorProblem(line, 100.0, 2, 200.0, p_max=2)], acquisition=Acquisition.LINEAR)[0].how == "linear"
    assert propose([]) == []


def test_questions_are_answered_alike_alone_and_together() -> None:
    problems = [
        OperatorProblem(q1(), 6e6, 10, 3.7e6, 26),
        OperatorProblem(history({3: 30.0}), 20.0, 3, 30.0, 26),
        OperatorProblem((), 20.0, 3, 30.0, 4),
        OperatorProblem(q1(), 1e6, 10, 3.7e6, 12),
    ]
    assert propose(problems) == [propose([problem])[0] for problem in problems]


def test_cei_prefers_a_smaller_parallelism_that_is_less_likely_feasible() -> None:
    mean, sd = np.array([[40.0, 90.0, 102.0, 140.0]]), np.array([[5.0, 20.0, 1.0, 1.0]])
    required, p_max = np.array([100.0]), np.array([4])
    assert acquire(mean, sd, required, p_max, Acquisition.FEASIBLE).tolist() == [3]
    # (5 - 3) x Pr(N(102, 1) >= 100) = 1.954; (5 - 2) x Pr(N(90, 20) >= 100) = 0.926
    score = improvement(mean, sd, required, p_max + 1)[0]
    np.testing.assert_allclose(score[1:3], [3 * 0.308538, 2 * 0.977250], rtol=1e-5)
    assert acquire(mean, sd, required, p_max, Acquisition.CEI).tolist() == [3]
    near = np.array([[40.0, 99.0, 100.5, 140.0]])
    assert acquire(near, sd, required, p_max, Acquisition.CEI).tolist() == [2]
    assert acquire(near, sd, required, p_max, Acquisition.FEASIBLE).tolist() == [3]
    assert acquire(near, sd, np.array([200.0]), p_max, Acquisition.CEI).tolist() == [0]


def test_top_k_keeps_the_latest_and_takes_their_mean() -> None:
    result: History = ()
    for capacity in (10.0, 20.0, 30.0, math.nan, 0.0, -1.0, math.inf):
        result = add_observation(result, 4, capacity, keep=2)
    assert result == (ObservedCapacity(4, (20.0, 30.0)),)
    assert result[0].capacity_per_s == 25.0
    assert [known.parallelism for known in add_observation(add_observation(result, 9, 1.0), 2, 1.0)] == [2, 4, 9]
    assert add_observation(result, 0, 5.0) == result


def test_the_big_phase_doubles_only_when_all_are_at_p_max() -> None:
    assert big_step({"a": 1, "b": 1}, 1) == ({"a": 2, "b": 2}, 2)
    assert big_step({"a": 4, "b": 1}, 4) == ({"a": 4, "b": 4}, 4)
    assert big_step({"a": 9}, 8, limit=12) == ({"a": 12}, 12)
    reached, p_max = {"a": 1}, 1
    levels = []
    for _ in range(5):
        reached, p_max = big_step(reached, p_max)
        levels.append(p_max)
    assert levels == [2, 4, 8, 16, 32]


def test_the_controller_scales_up_only_with_backpressure_and_stress() -> None:
    limits = Thresholds()
    assert provision(0.5, 0.95, limits) is ProvisionState.UNDER
    assert provision(0.5, 0.70, limits) is ProvisionState.BALANCED  # skew: parallelism would not help
    assert provision(0.0, 0.95, limits) is ProvisionState.BALANCED
    assert provision(0.0, 0.30, limits) is ProvisionState.OVER
    assert provision(0.5, 0.30, limits) is ProvisionState.BALANCED
    assert provision(0.1, 0.86, limits) is ProvisionState.UNDER  # at the threshold
    assert backpressure_share(0.2, 0.1, 0.5) == 0.25
    assert backpressure_share(0.0, 0.0, 0.0) == 0.0
    with pytest.raises(ValueError, match="core_min"):
        Thresholds(core_min=0.9, core_max=0.8)


def test_the_decision_gate_compares_the_level_of_the_job() -> None:
    assert is_worth_restart({"a": 10, "b": 2}, {"a": 11, "b": 2}, 0.1)
    assert not is_worth_restart({"a": 20, "b": 2}, {"a": 21, "b": 9}, 0.1)
    assert is_worth_restart({"a": 11}, {"a": 10}, 0.1)
    assert not is_worth_restart({"a": 10}, {"a": 10}, 0.0)
    assert is_worth_restart({"a": 10, "b": 2}, {"a": 10, "b": 3}, 0.1)


@given(
    st.dictionaries(st.integers(1, 32), st.floats(1.0, 1e7), max_size=6),
    st.one_of(st.just(math.nan), st.floats(0.0, 1e8)),
    st.integers(0, 4),
    st.sampled_from(list(Acquisition)),
)
def test_an_answer_is_a_parallelism_and_a_modelled_one_is_near_what_was_seen(seen, required, alpha, how) -> None:
    asked = OperatorProblem(history(seen), required, 3, 100.0, max(seen, default=3))
    (suggestion,) = propose([asked], alpha=alpha, acquisition=how)
    assert suggestion.parallelism >= 1
    if suggestion.how == "model":
        assert min(abs(suggestion.parallelism - known) for known in seen) <= alpha
        assert suggestion.parallelism <= max(seen)
    if math.isnan(required):
        assert suggestion == Suggestion(3, "kept")
