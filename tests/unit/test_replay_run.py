"""What candidate policies can read and do in a replay, and what it costs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from replayed_line import MONDAY, workload

from include.policy_catalogue import Decides
from lab.replay.candidate_policies import CandidatePolicy, build_candidates, list_deciding, list_names
from lab.replay.conditions import Conditions, Disturbances, Prices
from lab.replay.hosted_driver import HostedDriver
from lab.replay.replay_run import CandidateError, ReplayResult, ReplayRun
from lab.replay.scores import WindowCosts, compute_score, find_span
from lab.replay.tick_snapshot import TickSnapshot
from models.policies.registry import policy

UNDISTURBED = Disturbances(failures_per_day=0, capacity_noise=0.0)


@dataclass
class Probe:
    """Keeps what it reads; asks for what it is given."""

    wants: Mapping[int, int] = field(default_factory=dict)
    snapshots: list[dict[str, Any]] = field(default_factory=list)

    def first_memory(self) -> int:
        return 0

    def tick(self, snapshot: TickSnapshot, memory: int) -> tuple[Mapping[str, int] | None, int]:
        latest = snapshot.observations(0.5)
        self.snapshots.append(
            {
                "now": snapshot.now_s,
                "due": snapshot.plan_due,
                "up": snapshot.is_up,
                "load": dict(snapshot.load_per_s),
                "last": int(latest.window_start_s[-1] + 300) if len(latest) else None,
                "models": snapshot.models,
                "trained": snapshot.trained_s,
                "forecast": snapshot.forecast,
                "true": snapshot.true_load,
                "running": snapshot.running["work"],
                "ingested": snapshot.ingested_s,
            }
        )
        wanted = self.wants.get(memory)
        return (None if wanted is None else {"work": wanted}), memory + 1


def run(probe: Probe, days: float, **options: Any) -> ReplayResult:
    given = workload(days, options.pop("start_s", MONDAY))
    return ReplayRun(
        given, [CandidatePolicy("probe", probe)], [0], Conditions(disturbances=UNDISTURBED, **options)
    ).run()


def test_a_snapshot_shows_nothing_from_later() -> None:
    probe = Probe()
    run(probe, 0.3)
    for one in probe.snapshots[1:]:
        assert one["last"] == one["now"]  # the last window has just ended
        assert one["ingested"] <= one["now"] - 900
        assert one["due"] == (one["now"] % 3600 == 900)
    assert probe.snapshots[0]["last"] is None
    assert probe.snapshots[0]["load"] == {}
    assert all(one["models"] is None for one in probe.snapshots if one["now"] < MONDAY + 9000)
    trained = [one for one in probe.snapshots if one["now"] >= MONDAY + 9000]
    assert {one["trained"] for one in trained} == {MONDAY + 9000}
    assert all(set(one["models"].capacity) == {"in", "work", "out"} for one in trained)
    forecast = {one["now"]: one["forecast"] for one in probe.snapshots}
    assert forecast[MONDAY + 3600] is None
    assert forecast[MONDAY + 4500].start_s == MONDAY + 3600
    assert forecast[MONDAY + 8000 // 300 * 300].start_s == MONDAY + 3600


def test_the_true_load_begins_where_the_forecast_does_and_is_what_arrives_then() -> None:
    probe = Probe()
    arrived_per_s = run(probe, 0.3).arrivals_per_s[:, 0]
    one = next(one for one in probe.snapshots if one["now"] == MONDAY + 4500)
    true, made = one["true"], one["forecast"]
    first = (made.start_s - MONDAY) // 300
    assert {name: values.shape for name, values in true.quantiles.items()} == {
        name: values.shape for name, values in made.quantiles.items()
    }
    for quantile in true.quantiles["in"]:
        assert quantile[: len(arrived_per_s) - first] == pytest.approx(arrived_per_s[first:])
    assert np.isfinite(true.quantiles["in"]).all()


def test_a_trace_may_begin_between_hours() -> None:
    probe = Probe()
    run(probe, 0.15, start_s=MONDAY + 2400)
    assert next(one["now"] for one in probe.snapshots if one["due"]) == MONDAY + 4500
    known = [one for one in probe.snapshots if one["forecast"] is not None]
    assert known[0]["now"] == MONDAY + 4500
    assert known[0]["forecast"].start_s == MONDAY + 3600


def test_models_are_learned_from_own_windows() -> None:
    probe = Probe({n: 6 + n // 6 % 6 for n in range(200)})
    run(probe, 0.5)
    curve = probe.snapshots[-1]["models"].capacity["work"]
    assert len(curve.observed) > 3
    true = 100.0 * curve.parallelism / (1 + 0.02 * (curve.parallelism - 1))
    middle = (curve.parallelism >= curve.observed.min()) & (curve.parallelism <= curve.observed.max())
    np.testing.assert_allclose(curve.mean_per_s[middle], true[middle], rtol=0.06)
    assert probe.snapshots[-1]["models"].selectivity["work"] == pytest.approx(0.5)
    assert 25 < probe.snapshots[-1]["models"].recovery.downtime_rescale_s < 65


def test_rescales_wait_for_the_job_and_the_cooldown() -> None:
    probe = Probe({2: 11, 3: 10, 4: 99, 5: 0})
    outcome = run(probe, 0.05, limits=Conditions().limits.model_copy(update={"cooldown_s": 600.0}))
    assert outcome.ledger.rescales[:8, 0].tolist() == [0, 0, 1, 0, 1, 0, 0, 0]
    assert outcome.refused.tolist() == [2]
    assert probe.snapshots[5]["running"] == 16  # clipped to the slots


@pytest.mark.parametrize("asks", [True, False])
def test_only_the_reactive_controller_reaches_a_job_that_restarts(asks: bool) -> None:
    disturbances = replace(UNDISTURBED, failures_per_day=1, failure_downtime_s=400.0, failure_downtime_sd=0.0)

    @dataclass
    class Rescuer(Probe):
        def tick(self, snapshot: TickSnapshot, memory: int) -> tuple[Mapping[str, int] | None, int]:
            super().tick(snapshot, memory)
            return ({"work": 16} if snapshot.is_restarting else None), memory + 1

    probe = Rescuer()
    outcome = ReplayRun(
        workload(1.0), [CandidatePolicy("probe", probe, asks)], [0], Conditions(disturbances=disturbances)
    ).run()
    down = [n for n, one in enumerate(probe.snapshots) if not one["up"]]
    assert down
    assert (outcome.ledger.rescales.sum() > 0) == asks
    assert (outcome.refused.sum() > 0) != asks
    assert (probe.snapshots[down[-1] + 1]["running"] == 16) == asks


def test_the_running_configuration_is_no_rescale() -> None:
    probe = Probe()
    first = run(probe, 0.02).ledger.slots[0, 0]
    again = Probe(dict.fromkeys(range(10), int(first)))
    assert run(again, 0.02).ledger.rescales.sum() == 0


def test_a_driver_that_raises_is_named_with_its_time() -> None:
    class Broken(Probe):
        def tick(self, snapshot: TickSnapshot, memory: int) -> tuple[None, int]:
            raise ZeroDivisionError("no")

    with pytest.raises(CandidateError, match=r"probe, line-0, day 0.000.*ZeroDivisionError"):
        run(Broken(), 0.02)


def test_cost_is_the_weighted_sum() -> None:
    ledger = WindowCosts.empty(6, 1)
    ledger.slots[:] = 8
    ledger.rescales[2] = 1
    ledger.late_s[3] = 120.0
    result = compute_score(ledger, 0, slice(0, 6), window_s=300, slots_max=16, prices=Prices())
    assert result.cost == pytest.approx(0.2 * 0.5 * 30 + 0.4 * 2 + 0.4)
    assert result.slot_hours == pytest.approx(4.0)
    assert result.late_minutes_per_day == pytest.approx(2 * 48)
    expensive = compute_score(ledger, 0, slice(0, 6), window_s=300, slots_max=16, prices=replace(Prices(), late=4.0))
    assert expensive.cost - result.cost == pytest.approx(3.6 * 2)


def test_segments_are_the_first_day_and_the_last_third() -> None:
    assert find_span("first_day", 900, 300) == slice(0, 288)
    assert find_span("last_third", 900, 300) == slice(600, 900)
    assert find_span("after_first_day", 900, 300) == slice(288, 900)
    assert find_span("after_first_day", 100, 300) == slice(100, 100)
    with pytest.raises(ValueError, match="no segment"):
        find_span("noon", 900, 300)


def test_planned_policies_apply_due_steps() -> None:
    given = workload(1.2)
    replay_run = ReplayRun(
        given,
        [CandidatePolicy("need_vector", HostedDriver.of("need_vector", policy("need_vector")))],
        [0],
        Conditions(disturbances=UNDISTURBED),
    )
    outcome = replay_run.run()
    assert 2 <= outcome.ledger.rescales.sum() <= 12
    assert outcome.ledger.late_s.sum() == 0.0
    high, low = outcome.ledger.slots[72:96, 0], outcome.ledger.slots[200:240, 0]  # at the crest and in the trough
    assert high.min() > low.max()


def test_unknown_policies_are_refused() -> None:
    with pytest.raises(ValueError, match="no policy is called"):
        build_candidates(["nothing"], workload(0.1), Conditions())
    assert set(list_names()) >= set(list_deciding(Decides.AHEAD)) > set()
