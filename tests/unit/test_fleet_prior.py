"""Operators that were observed little: kinds, the prior of a kind, and the posterior of an operator."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.pipeline.packed_models import pack_models
from include.domain.graph import JobGraph, Operator
from include.settings import Capacity, Settings
from include.settings import Planner as PlannerSettings
from models.arrays import Floats
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.capacity.fleet_prior import FleetPrior
from models.capacity.kinds import KINDS, kind_of
from models.capacity.partial_pooling import MAX_LEVEL_SD, pool_models
from models.capacity.prior_learning import learn_prior
from models.capacity.prior_posterior import posterior
from spark_jobs.plan.job_plan import PlanTask, _models

MAP, JOIN, SOURCE, SINK = (KINDS.index(kind) for kind in ("map", "join", "source", "sink"))
SEEN = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
NOTHING = np.zeros((1, 0))


def curve_of(contention: Floats | float, level: float, at: Floats | float = SEEN) -> Floats:
    return np.asarray(np.exp(level) * at / (1.0 + contention * (at - 1.0)), float)


def fleet_of(contentions: dict[int, list[float]], level: float = 5.0) -> FleetPrior:
    """A fleet in which every operator was seen at SEEN; kind -> true contention of each of its operators."""
    pairs = [(kind, contention) for kind, result in contentions.items() for contention in result]
    kind = np.array([kind for kind, _ in pairs], np.int64)
    per_s = np.concatenate([curve_of(contention, level) for _, contention in pairs])
    owner = np.repeat(np.arange(len(pairs)), len(SEEN))
    everyone = np.ones(len(pairs), bool)
    return learn_prior(
        kind, owner, np.tile(SEEN, len(pairs)), per_s, length_scale=np.full(len(pairs), 4.0), eligible=everyone
    )


@pytest.mark.parametrize(
    ("name", "upstreams", "downstreams", "kind"),
    [
        ("Source: clicks -> Map", 0, 1, "source"),
        ("GroupWindowAggregate(groupBy=[bidder]) -> Calc", 1, 1, "keyed"),
        ("Keyed count", 1, 1, "keyed"),
        ("Window(Tumbling) -> Sink: Print", 1, 0, "keyed"),
        ("WindowJoin", 1, 1, "join"),
        ("enrich", 2, 1, "join"),
        ("Sink: kafka", 1, 0, "sink"),
        ("Sink: session counts", 1, 0, "sink"),
        ("Kafka Writer", 1, 1, "sink"),
        ("out", 1, 0, "sink"),
        ("parse", 1, 2, "map"),
    ],
)
def test_kind_comes_from_the_name_and_the_place_in_the_graph(
    name: str, upstreams: int, downstreams: int, kind: str
) -> None:
    assert kind_of(name, upstreams, downstreams) == kind
    assert kind in KINDS


def test_a_kind_has_its_operators_mean_and_covariance_and_a_kind_without_operators_the_fleets() -> None:
    prior = fleet_of({MAP: [0.01] * 200, JOIN: [0.02, 0.06] * 100})
    np.testing.assert_allclose(prior.mean[[MAP, JOIN]], [[5.0, 0.01], [5.0, 0.04]], atol=0.001)
    np.testing.assert_allclose(np.sqrt(prior.covariance[JOIN, 1, 1]), 0.02, atol=0.001)
    assert prior.covariance[MAP, 1, 1] < 0.2 * prior.covariance[JOIN, 1, 1]
    assert prior.operators.tolist()[MAP] == 200
    assert prior.operators[SOURCE] == 0
    assert prior.mean[SOURCE, 1] == pytest.approx(0.025, abs=0.001)
    assert prior.covariance[SOURCE, 1, 1] > prior.covariance[JOIN, 1, 1]
    assert prior.length_scale[MAP] == pytest.approx(4.0)


def test_few_operators_make_a_wide_prior() -> None:
    few, many = fleet_of({MAP: [0.02, 0.04]}), fleet_of({MAP: [0.02, 0.04] * 20})
    assert few.covariance[MAP, 1, 1] > 2 * many.covariance[MAP, 1, 1]
    assert few.covariance[MAP, 0, 0] > 0.25  # of a level within a factor of e nothing was seen that speaks against it


def test_operators_that_are_badly_observed_or_not_eligible_are_left_out() -> None:
    narrow = learn_prior(
        np.array([MAP, MAP]),
        np.array([0, 0, 1, 1, 1]),
        np.array([1.0, 8.0, 5.0, 6.0, 7.0]),
        np.array([1.0, 5.0, 2.0, 3.0, 4.0]),
        length_scale=np.full(2, np.nan),
        eligible=np.ones(2, bool),
    )
    assert not narrow.operators.any()
    assert FleetPrior.from_arrays(narrow.to_arrays()) is None
    assert FleetPrior.from_arrays({}) is None
    assert not fleet_of({-1: [0.02]}).operators.any()


def test_one_parallelism_gives_the_level_and_the_fleet_the_contention() -> None:
    prior = fleet_of({MAP: [0.02, 0.04] * 20})
    mean, sd = posterior(
        prior, np.array([MAP]), np.array([[4.0]]), np.array([[4000.0]]), noise_share=np.array([[0.02]]), top=32
    )
    assert mean[0, 3] == pytest.approx(4000, rel=0.01)
    assert mean[0, 15] == pytest.approx(16_000 * 1.09 / 1.45, rel=0.02)
    share = sd[0] / mean[0]
    assert share.argmin() == 3
    assert share[3] < 0.03
    # Contention differs by 0.01: from 4 to 32 instances that is 31 / 1.93 - 3 / 1.09 = 13%.
    assert 0.12 < share[31] < 0.2


def test_truth_lies_in_the_band_as_often_as_it_says() -> None:
    contentions = np.clip(np.random.default_rng(0).normal(0.04, 0.012, 400), 0.0, None)
    prior = fleet_of({MAP: contentions[:200].tolist()})
    count, level = 200, 3.0  # unlike the fleet's
    mean, sd = posterior(
        prior,
        np.full(count, MAP),
        np.full((count, 1), 4.0),
        curve_of(contentions[200:], level, 4.0)[:, None],
        noise_share=np.full((count, 1), 0.02),
        top=32,
    )
    inside = np.abs(curve_of(contentions[200:], level, 32.0) - mean[:, 31]) <= 1.2816 * sd[:, 31]
    assert 0.72 < inside.mean() < 0.9


def test_nothing_seen_is_the_prior_and_padding_changes_nothing() -> None:
    prior = fleet_of({MAP: [0.02, 0.04] * 20})
    mean, sd = posterior(prior, np.array([MAP]), NOTHING, NOTHING, noise_share=NOTHING, top=8)
    np.testing.assert_allclose(mean[0], curve_of(0.03, 5.0, np.arange(1.0, 9)), rtol=0.01)
    assert sd[0, 0] / mean[0, 0] == pytest.approx(
        np.sqrt(np.expm1(prior.covariance[MAP, 0, 0] + prior.residual_sd[MAP] ** 2))
    )
    padded = posterior(
        prior,
        np.array([MAP, MAP]),
        np.array([[np.nan, np.nan], [4.0, np.nan]]),
        np.array([[np.nan, np.nan], [500.0, np.nan]]),
        noise_share=np.array([[np.nan, np.nan], [0.02, np.nan]]),
        top=8,
    )
    np.testing.assert_allclose(padded[0][0], mean[0])
    np.testing.assert_allclose(padded[1][0], sd[0])


def curve(seen: list[int]) -> CapacityCurve:
    at = np.array(seen)
    grid = np.arange(1, 17)
    return CapacityCurve(grid, 100.0 * grid, 3.0 * grid, at, 100.0 * at, 100.0, noise_share=0.05)


def job(capacity: dict[str, CapacityCurve]) -> JobModels:
    return JobModels(
        capacity,
        dict.fromkeys(("in", "parse", "out"), 1.0),
        RecoveryModel(30.0, 5.0, 60.0, 5.0, 30.0, 0),
        LatencyModel(np.zeros(0), np.zeros(0)),
    )


def test_only_operators_without_a_good_model_are_pooled() -> None:
    graph = JobGraph((Operator("in"), Operator("parse", ("in",), 12), Operator("out", ("parse",))))
    prior = fleet_of({MAP: [0.03] * 30, SOURCE: [0.01] * 30})
    own = curve([2, 4, 8])
    models = job({"in": own, "out": curve([4])})
    result = pool_models(models, graph, prior, 16)
    assert result.capacity["in"] is own
    out = result.capacity["out"]
    assert out.observed.tolist() == [4]
    assert out.mean_per_s[3] == pytest.approx(400, rel=0.01)
    assert out.mean_per_s[15] < 1500  # not 1600, as alone
    assert len(result.capacity["parse"].parallelism) == 12
    assert not len(result.capacity["parse"].observed)
    assert pool_models(models, graph, None, 16) is models
    everything = job(dict.fromkeys(("in", "parse", "out"), own))
    assert pool_models(everything, graph, prior, 16) is everything


def test_an_operator_never_observed_keeps_its_parallelism_where_levels_of_its_kind_differ() -> None:
    graph = JobGraph((Operator("in"), Operator("parse", ("in",)), Operator("out", ("parse",))))
    prior = fleet_of({MAP: [0.03] * 30})
    wide = replace(prior, covariance=prior.covariance + np.array([[MAX_LEVEL_SD**2, 0.0], [0.0, 0.0]]))
    assert set(pool_models(job({}), graph, wide, 16).capacity) == set()


def test_plans_use_the_prior_of_the_bundle_unless_the_setting_is_off() -> None:
    graph = JobGraph((Operator("in"), Operator("parse", ("in",)), Operator("out", ("parse",))))
    plain = pack_models("v1", {("eu", "orders"): job({"in": curve([2, 4, 8]), "out": curve([4])})})
    prior = fleet_of({SINK: [0.03] * 30})
    retained = FleetBundle.from_bytes(replace(plain, arrays={**plain.arrays, **prior.to_arrays()}).to_bytes())
    state = SimpleNamespace(cluster="eu", job="orders", parallelism=dict.fromkeys(graph.names, 4), placed=())

    def at_16(bundle: FleetBundle, settings: Settings) -> float:
        task = PlanTask(settings, datetime(2026, 1, 1, tzinfo=UTC), SimpleNamespace(value=bundle))  # type: ignore[arg-type]
        result = _models(task, state, graph)  # type: ignore[arg-type]
        return float(result.capacity["out"].mean_per_s[15])

    without = Settings(planner=PlannerSettings(capacity=Capacity(fleet_prior=False)))
    alone = curve([4]).mean_per_s[15]
    assert at_16(retained, without) == alone
    assert at_16(plain, Settings()) == alone  # a model of before
    there = replace(plain, arrays={**plain.arrays, **prior.to_arrays()})
    assert at_16(retained, Settings()) == at_16(there, Settings()) < 0.9 * alone
