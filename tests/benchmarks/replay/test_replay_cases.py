"""Cases of the replay: every candidate runs, alone or beside others, and a fleet's prior is of other jobs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from replayed_line import MONDAY, workload

from benchmarks.replay.fleet_prior_value import compare_with_prior, learn_prior_without
from benchmarks.replay.replay_candidates import build_candidates, list_names
from benchmarks.replay.replay_cases import CaseResult, ReplayCase, divide, merge, replay_case
from benchmarks.replay.replay_jobs import JOBS
from benchmarks.replay.replay_traces import Trace
from benchmarks.replay.rivals.rival_catalogue import list_rivals
from include.policy_catalogue import catalogue
from lab.replay.ablations import FLEET
from lab.replay.conditions import Conditions, Disturbances

TRACE = Trace("wave", MONDAY, workload(0.5).compute_means(300)[:, 0], ())


def test_every_policy_runs_and_the_same_arguments_give_the_same_rows() -> None:
    trace = replace(TRACE, values=TRACE.values[:48])
    case = ReplayCase(trace, "wordcount", list_names(), (0,), Conditions())
    rows = merge([replay_case(case)], case.policies).rows
    references = {"static_max", "static_mean", "clairvoyant", "bound"}
    other_names = {"static"}  # of static_max and static_mean
    assert {row["policy"] for row in rows} == {*catalogue(), *list_rivals(), *references} - other_names
    assert rows == merge([replay_case(case)], case.policies).rows
    floor = [row for row in rows if row["policy"] == "clairvoyant"]
    assert all(row["cost_vs_clairvoyant"] == 1.0 for row in floor)
    assert all(float(str(row["cost_vs_bound"])) >= 1.0 for row in rows)


def test_candidates_share_random_draws_with_others_or_alone() -> None:
    conditions = Conditions()
    alone = replay_case(ReplayCase(TRACE, "nexmark-q3", ("need_vector",), (0, 1), conditions))
    beside = replay_case(ReplayCase(TRACE, "nexmark-q3", ("ds2", "dragster_saddle", "need_vector"), (0, 1), conditions))
    assert alone.rows == [row for row in beside.rows if row["policy"] == "need_vector"]


def test_policies_are_divided_evenly() -> None:
    parts = divide(list_names(), 2)
    assert sorted(name for part in parts for name in part) == sorted(list_names())
    assert len(divide(("ds2",), 4)) == 1
    assert merge([CaseResult([], {"b": np.zeros(1)}, np.zeros((1, 1)), {"b": 1})], ("a", "b")).refused == {"b": 1}


def test_a_fleet_prior_never_uses_the_new_job_and_knows_more_than_one_window() -> None:
    disturbances = Disturbances()
    wordcount, eight = learn_prior_without("wordcount", disturbances), learn_prior_without("eight", disturbances)
    operators = sum(len(make().spec.operators) for make in JOBS.values())
    assert wordcount.operators.sum() == operators - 3
    assert eight.operators.sum() == operators - 8
    jobs = {name: make().spec for name, make in JOBS.items()}
    others = [spec for name, spec in jobs.items() if name not in {"wordcount", "side_outputs"}]  # of one fleet
    errors, inside = compare_with_prior(jobs["wordcount"], others, disturbances)
    assert errors[1].mean() < 0.7 * errors[0].mean()
    assert inside[1].mean() >= 0.8
    with pytest.raises(ValueError, match="needs a fleet"):
        build_candidates([FLEET], workload(0.1), Conditions())
