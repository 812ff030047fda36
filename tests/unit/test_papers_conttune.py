"""ContTune's experiments: accounting identities of the published tables, curves, and a small run of Table 4a."""

import json
import math

import numpy as np
import pytest

from benchmarks.papers.conttune import real_jobs, synthetic_jobs
from benchmarks.papers.conttune.accounting import dragster, random_search
from benchmarks.papers.conttune.conttune_experiments import DS2, Method, run, workload
from benchmarks.papers.conttune.conttune_published import IDEAL_S, PUBLISHED, QUERIES
from benchmarks.papers.conttune.measured_curves import fit_physical, fit_relative, scaling
from benchmarks.papers.conttune.queries import query

GAINS = {"q1": (517572.445, 0.0474740873, -0.000591689188), "q2": (755204.251, 0.0601142861, -0.000863804906)}


def test_published_end_to_end_times_are_the_sum_of_their_parts() -> None:
    cells = synthetic_jobs.identities()
    assert len(cells) == 36
    assert max(abs(cell.ours - cell.published) for cell in cells) < 0.05
    assert IDEAL_S == 600 * 120


def test_tuning_times_are_reconfigurations_times_a_constant_of_the_query() -> None:
    constants = [21.4, 14.4, 14.5, 16.4, 17.7, 18.1]
    assert [synthetic_jobs.seconds_per_reconfiguration(name) for name in QUERIES] == pytest.approx(constants, rel=0.03)
    for row in ("DS2", "ContTune_a0", "ContTune_a3"):
        for name, constant in zip(QUERIES, constants, strict=True):
            charged = 120 * PUBLISHED["table4a_avg_reconfigurations"][row][name] * constant
            assert PUBLISHED["table4d_tuning_s"][row][name] == pytest.approx(charged, rel=0.05)


def test_headline_and_table_8_agree_with_table_4a() -> None:
    mean = PUBLISHED["table4a_avg_reconfigurations"]
    assert (mean["DS2"]["Q8"] - mean["ContTune_a3"]["Q8"]) / mean["DS2"]["Q8"] == pytest.approx(0.6075, abs=1e-4)
    assert sum(PUBLISHED["table8_q1_acquisition"]["DS2"]) / 120 == pytest.approx(mean["DS2"]["Q1"], abs=0.005)


@pytest.mark.parametrize("name", ["q1", "q2"])
def test_scalability_laws_of_the_measured_operators(name: str) -> None:
    samples = PUBLISHED[f"{name}_abilities_per_s"]
    p = np.array([float(one) for one in samples])
    means = np.array([np.mean(values) for values in samples.values()])
    fitted = fit_relative(p, means)
    assert fitted == pytest.approx(GAINS[name], rel=1e-3)
    off = np.abs(scaling(p, *fitted) / means - 1)
    assert (off.mean(), off.max()) == pytest.approx({"q1": (0.0156, 0.0281), "q2": (0.0242, 0.0459)}[name], abs=2e-4)
    assert all(coefficient >= 0 for coefficient in fit_physical(p, means))


def test_every_simulated_query_needs_the_cores_of_table_5() -> None:
    published = PUBLISHED["table5_cores_at_10Wu_second_time"]["ContTune_a3"]
    assert {name: query(name).needed for name in QUERIES} == published


def test_dragsters_means_are_multiples_of_eleven_twentieths() -> None:
    assert all(cell.ours == pytest.approx(cell.published, abs=1e-9) for cell in dragster())


def test_random_search_is_the_maximum_of_uniform_draws() -> None:
    cells = {cell.column: cell for cell in random_search()}
    for name, (m, bound) in {"WordCount": (2, 16), "Q1": (2, 32), "Q3": (1, 32), "Q8": (1, 16)}.items():
        assert cells[name].ours == pytest.approx(m * (bound + 1) / (m + 1), rel=0.04)


def test_the_workload_brings_each_rate_twice() -> None:
    rates = workload(2)
    assert rates.shape == (2, 6, 20)
    assert (np.sort(rates[..., :10]) == np.arange(1, 11)).all()
    assert (rates[..., :10] == rates[..., 10:]).all()
    assert len({tuple(one) for one in rates.reshape(-1, 20)}) == 12


@pytest.mark.parametrize("name", ["WordCount", "Q1", "Q2"])
def test_table_4a_and_5_without_noise(name: str) -> None:
    """One seed of the published size: six permutations of 20 rates."""
    methods = {"DS2": DS2, "ContTune_a0": Method(alpha=0), "ContTune_a3": Method()}
    found = {method: run(query(name), settings, 1) for method, settings in methods.items()}
    means = [one.mean_per_seed[0] for one in found.values()]
    assert means == sorted(means, reverse=True)
    published = [PUBLISHED["table4a_avg_reconfigurations"][method][name] for method in methods]
    assert means == pytest.approx(published, rel=0.1)
    cores = PUBLISHED["table5_cores_at_10Wu_second_time"]["ContTune_a3"][name]
    assert set(synthetic_jobs.peak_cores(found["ContTune_a3"])) == {cores}


def test_a_charged_big_phase_costs_more_and_reaches_a_power_of_two() -> None:
    free, charged = run(query("Q1"), Method(), 1), run(query("Q1"), Method(big=True), 1)
    assert charged.mean_per_seed[0] > free.mean_per_seed[0]
    assert charged.most_cores.max() == PUBLISHED["table4b_max_cores"]["ContTune_a3"]["Q1"] == 32
    assert np.abs(charged.cores - free.cores).max() <= 1


def test_recorded_rates_replace_the_drawn_ones(tmp_path) -> None:
    job = real_jobs.JOBS["ETL"]
    (tmp_path / job.file).write_text("minute,records_per_s\n0,1.5\n1,\r2.5\n", encoding="utf-8", newline="")
    assert real_jobs.rates(job, 0, tmp_path).tolist() == [1.5, 2.5]
    drawn = real_jobs.rates(job, 0, None)
    assert drawn.shape == (120,)
    assert drawn.min() >= job.deciles_per_s[0]
    assert drawn.max() <= job.deciles_per_s[-1]
    assert (drawn != real_jobs.rates(job, 1, None)).any()


def test_published_figures_are_numbers() -> None:
    def leaves(node):
        if isinstance(node, dict | list):
            for child in node.values() if isinstance(node, dict) else node:
                yield from leaves(child)
        else:
            yield node

    numbers = [leaf for leaf in leaves(PUBLISHED) if not isinstance(leaf, str)]
    assert len(numbers) > 250
    assert all(math.isfinite(number) for number in numbers)
    assert json.dumps(PUBLISHED)
