"""Phoebe and TWRES as policies: what they decide from a profile, from the learnt models, and from next to nothing."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from situations import change_job, make_situation

from include.domain.graph import JobGraph, Operator
from include.settings import SETTINGS_FILE_VARIABLE, Planner, load_settings
from lab.policies.phoebe.forecast import ForecastOptions, MultistepForecast
from lab.policies.phoebe.latency_model import rows_of_one_latency
from lab.policies.phoebe.phoebe_inputs import measure
from lab.policies.phoebe.phoebe_options import PhoebeOptions
from lab.policies.phoebe.phoebe_policy import Phoebe, PhoebeMemory
from lab.policies.phoebe.settling_policy import SettlingMemory, Uptime
from lab.policies.phoebe.twres import Twres
from lab.profiling.rows import CapacityPoint, Measurement, Profile
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.policies.memory import dump, load
from models.policies.observations import MEASURES, Latency, Observations
from models.policies.protocol import Schedule, Situation
from models.policies.registry import memory_codec, policy
from models.scheduling.demand import SourceForecast

GRAPH = JobGraph((Operator("source", (), 128), Operator("window", ("source",), 128)))
AT = 1_000_200


def profile() -> Profile:
    """A job of 16,000 records/s per worker: 1050 ms below its capacity, a minute above."""
    rows = [
        Measurement(s, rate, 1050.0 + s if rate < 16_000.0 * s else 60_000.0)
        for s in (2, 5, 8, 11, 14, 17, 20, 23)
        for rate in np.arange(20_000.0, 16_000.0 * s + 20_000.0, 20_000.0).tolist()
    ]
    return Profile(tuple(rows), tuple(CapacityPoint(s, 16_000.0 * s) for s in (2, 5, 8, 11, 14, 17, 20, 23)))


def models(*, curves: bool = False) -> JobModels:
    p = np.arange(1, 25)
    curve = CapacityCurve(p, 16_000.0 * p, 100.0 * np.ones(24), p, 16_000.0 * p, 16_000.0)
    recovery = RecoveryModel(60.0, 5.0, 125.0, 8.0, 10.0, 4)
    capacity = {"window": curve} if curves else {}
    return JobModels(capacity, {"source": 1.0, "window": 1.0}, recovery, LatencyModel(np.zeros(0), np.zeros(0)))


def windows(rate: float, workers: int, count: int = 12, latency_ms: float = 1050.0) -> Observations:
    """Windows of a minute that end now."""
    measures = {name: np.full((count, 2), np.nan) for name in MEASURES}
    measures["processing_rate_per_s"][:] = rate
    measures["target_data_rate_per_s"][:, 0] = rate
    measures["latency_ms"][:, 0] = latency_ms
    start = AT - 60 * np.arange(count, 0, -1)
    return Observations(
        start.astype(np.int64),
        60,
        np.full((count, 2), workers, np.int64),
        disturbed=np.zeros(count, bool),
        **measures,
    )


def situation(rate: float, workers: int = 12, **changes: object) -> Situation:
    given = {
        "as_of_s": AT,
        "graph": GRAPH,
        "parallelism": {"source": workers, "window": workers},
        "models": models(),
        "forecast": SourceForecast(AT, 1, {"source": np.full((4, 3600), rate)}),
        "slots_max": 24,
        "options": Planner(),
        "observations": windows(rate, workers),
    }
    return make_situation(**given | changes)  # type: ignore[arg-type]


def workers_of(schedule: Schedule) -> int:
    (decision,) = schedule.decisions
    result = set(decision.step.parallelism_to.tolist())
    assert len(result) == 1
    return int(result.pop())


def test_smallest_scale_out_within_the_recovery_target() -> None:
    """R < 180 with D = 125, I = 10: T > rate (1 + 135 / 55), so 70,000 records/s need 241,800, which 16 workers do."""
    policy = Phoebe(profile())
    schedule, memory = policy.decide(situation(70_000.0, workers=6), policy.first_memory())
    assert workers_of(schedule) == 16
    assert memory.expected_recovery_s == pytest.approx(125.0 + 70_000 * 135 / (256_000 - 70_000), abs=1.0)
    assert "16 workers" in schedule.decisions[0].reason


def test_a_change_is_followed_by_an_evaluation_interval_of_rest() -> None:
    policy = Phoebe(profile())
    _, memory = policy.decide(situation(70_000.0, workers=6), policy.first_memory())
    soon = situation(150_000.0, workers=16, as_of_s=AT + 599, observations=Observations.nothing(2, 60))
    schedule, _ = policy.decide(soon, memory)
    assert workers_of(schedule) == 16
    schedule, _ = policy.decide(change_job(soon, now_s=AT + 600), memory)
    assert workers_of(schedule) > 16


def test_a_failure_seen_in_the_windows_delays_the_evaluation() -> None:
    observed = windows(70_000.0, 6)
    disturbed = np.arange(12) >= 9
    failing = situation(70_000.0, workers=6, observations=replace(observed, disturbed=disturbed))
    schedule, memory = Phoebe(profile()).decide(failing, PhoebeMemory(profile=profile()))
    assert workers_of(schedule) == 6
    assert memory.uptime.interrupted_s == AT - 180


def test_small_steps_down_are_left_out_by_the_logged_rule_only() -> None:
    for rule, expected in (("logged", 18), ("algorithm 1", 16)):
        policy = Phoebe(profile(), PhoebeOptions(rule=rule))  # type: ignore[arg-type]
        schedule, _ = policy.decide(situation(70_000.0, workers=18), policy.first_memory())
        assert workers_of(schedule) == expected


def test_samples_are_taken_once_per_interval_and_change_the_latency_model() -> None:
    policy = Phoebe(profile())
    _, memory = policy.decide(situation(70_000.0, workers=16), policy.first_memory())
    assert memory.samples == (Measurement(16, 70_000.0, 1050.0, Latency.BACKLOG_AGE),)
    later = situation(70_000.0, workers=16, as_of_s=AT + 300)
    _, after = policy.decide(later, memory)
    assert after.samples == memory.samples
    _, after = policy.decide(change_job(later, now_s=AT + 600), memory)
    assert len(after.samples) == 2


@pytest.mark.parametrize("rule", ["logged", "algorithm 1"])
def test_ages_of_the_backlog_are_not_fitted_with_end_to_end_latencies(rule: str) -> None:
    """The profile says 1050 ms with 3 workers; 100 ages near zero at 12 of them are no latency to compare it with.

    R < 180 with D = 125, I = 10: T > 10,000 (1 + 135 / 55) = 34,500 records/s, which 3 workers have and 2 have not.
    """
    ages = tuple(Measurement(12, 9_000.0 + k, 0.5 * k, Latency.BACKLOG_AGE) for k in range(100))
    policy = Phoebe(profile(), PhoebeOptions(rule=rule))  # type: ignore[arg-type]
    memory = PhoebeMemory(profile=profile(), samples=ages)
    schedule, memory = policy.decide(situation(10_000.0, observations=windows(10_000.0, 12, latency_ms=20.0)), memory)
    assert workers_of(schedule) == 3
    assert memory.samples[-1].latency is Latency.BACKLOG_AGE  # kept: a profile of ages may come


def test_a_jobs_settings_and_its_stored_profile_reach_the_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the plan stage does it; a looser target of 300 s needs T > 10,000 (1 + 135 / 175), which 2 workers have."""
    file = tmp_path / "settings.toml"
    file.write_text('[planner]\npolicy = "phoebe"\n[planner.parameters."prod/loose"]\nrecovery_target_s = 300\n')
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(file))
    settings, codec = load_settings(), memory_codec("phoebe")
    ages = tuple(Measurement(12, 9_000.0 + k, 0.5 * k, Latency.BACKLOG_AGE) for k in range(100))
    stored = codec.dump(PhoebeMemory(profile=profile(), samples=ages))
    result = {}
    for job in ("prod/orders", "prod/loose"):
        chosen = policy("phoebe", settings.parameters_of(settings.planner.policy, job))
        schedule, _ = chosen.decide(situation(10_000.0), codec.load(PhoebeMemory, stored))
        result[job] = workers_of(schedule)
    assert result == {"prod/orders": 3, "prod/loose": 2}


def test_samples_of_the_profiles_latency_are_learnt_from() -> None:
    """A minute of latency at 16 workers, seen again and again, makes them abnormal at that load: more are wanted."""
    late = tuple(Measurement(16, 70_000.0 + k, 60_000.0) for k in range(5))
    policy = Phoebe(profile(), PhoebeOptions(rule="algorithm 1"))
    given = situation(70_000.0, workers=6)
    assert workers_of(policy.decide(given, PhoebeMemory(profile=profile()))[0]) == 16
    assert workers_of(policy.decide(given, PhoebeMemory(profile=profile(), samples=late))[0]) > 16
    aged = tuple(replace(one, latency=Latency.BACKLOG_AGE) for one in late)  # so late are records of a running job
    assert workers_of(policy.decide(given, PhoebeMemory(profile=profile(), samples=aged))[0]) > 16
    fresh = tuple(replace(one, latency_ms=0.0) for one in aged)
    assert workers_of(policy.decide(given, PhoebeMemory(profile=profile(), samples=fresh))[0]) == 16


def test_a_model_is_of_the_latency_that_most_of_the_profile_has() -> None:
    ends = tuple(Measurement(2, float(k), 1000.0 + k) for k in range(3))
    ages = tuple(Measurement(2, float(k), 0.0, Latency.BACKLOG_AGE) for k in range(3))
    raised = tuple(Measurement(2, float(k), 1000.0) for k in range(3))  # the smallest latency of the profile
    broken = Measurement(5, 1.0, math.nan, Latency.BACKLOG_AGE)
    assert rows_of_one_latency(ends[:1] + ages[:2], ends + ages) == ages[:2] + ages
    assert rows_of_one_latency(ends[:1] + ages[:1], ends + ages) == ends[:1] + ends + raised
    # what was not measured does not count
    assert rows_of_one_latency((*ends[:1], broken, broken), ages) == ends[:1] + raised
    assert rows_of_one_latency((), ends) == ()


def test_windows_say_what_their_latency_is_of() -> None:
    observed = replace(windows(70_000.0, 16), latency=Latency.END_TO_END)
    measured = measure(situation(70_000.0, workers=16, observations=observed))
    assert measured == Measurement(16, 70_000.0, 1050.0, Latency.END_TO_END)
    assert observed.since(AT - 60).latency is Latency.END_TO_END


def test_without_a_profile_the_learnt_capacity_curves_decide() -> None:
    given = situation(70_000.0, workers=6, models=models(curves=True))
    schedule, _ = Phoebe().decide(given, PhoebeMemory())
    assert workers_of(schedule) == 16
    schedule, _ = Twres().decide(given, SettlingMemory())
    assert workers_of(schedule) == 5


def test_twres_takes_what_just_sustains_the_forecast_and_one_more_when_late() -> None:
    policy = Twres(profile())
    schedule, _ = policy.decide(situation(70_000.0, workers=12), policy.first_memory())
    assert workers_of(schedule) == 5
    late = situation(70_000.0, workers=5, observations=windows(70_000.0, 5, latency_ms=9000.0))
    schedule, _ = policy.decide(late, policy.first_memory())
    assert workers_of(schedule) == 6


@pytest.mark.parametrize("policy", [Phoebe(), Twres(), Phoebe(profile()), Twres(profile())])
@pytest.mark.parametrize(
    "given",
    [
        situation(0.0),
        situation(0.0, observations=Observations.nothing(2, 60)),
        situation(0.0, observations=Observations.nothing(0, 60)),
        situation(
            0.0, forecast=SourceForecast(AT, 600, {"source": np.zeros((4, 6))}), observations=windows(math.nan, 12)
        ),
        situation(1e9, models=models(curves=True)),
        situation(5.0, workers=1, slots_max=1),
    ],
)
def test_no_input_makes_them_fail_and_their_memory_is_plain(policy: Phoebe | Twres, given: Situation) -> None:
    schedule, memory = policy.decide(given, policy.first_memory())  # type: ignore[arg-type]
    assert 1 <= workers_of(schedule) <= given.slots_max
    assert load(type(memory), dump(memory)) == memory
    again, second = policy.decide(given, policy.first_memory())  # type: ignore[arg-type]
    assert workers_of(again) == workers_of(schedule)
    assert second == memory


def test_uptime_counts_from_the_beginning_of_an_interruption() -> None:
    observed = windows(1.0, 2, count=4)
    memory = Uptime().add_windows(replace(observed, disturbed=np.array([False, True, True, False])))
    assert memory == Uptime(AT, AT - 180, False)
    assert not memory.is_settled(AT - 180 + 599)
    assert memory.is_settled(AT - 180 + 600)
    assert memory.add_windows(observed) == memory


def test_forecast_follows_a_sine_and_a_level() -> None:
    seconds = np.arange(40_000)
    sine = 100_000.0 * (1.0 + 0.8 * np.sin(2 * np.pi * seconds / 7200))
    noise = np.random.default_rng(0).uniform(0.95, 1.05, len(seconds))
    fitted = MultistepForecast.fit([sine[:20_000] * noise[:20_000]])
    ahead = fitted.ahead(sine[19_000:30_000] * noise[19_000:30_000])
    assert ahead.shape == (600,)
    assert np.abs(ahead - sine[30_000:30_600]).mean() < 4_000.0
    flat = MultistepForecast.fit([np.full(3000, 50.0)]).ahead(np.array([50.0]))
    assert flat == pytest.approx(np.full(600, 50.0), rel=1e-6)


def test_forecast_needs_one_whole_example() -> None:
    with pytest.raises(ValueError, match="1200 s"):
        MultistepForecast.fit([np.ones(1199)])
    options = ForecastOptions(horizon_s=60, trailing_bins=(1, 2))
    assert MultistepForecast.fit([np.ones(120)], options).ahead(np.ones(60)).shape == (60,)
    assert (MultistepForecast.fit([np.zeros(1300)]).ahead(np.zeros(10)) == 0.0).all()
