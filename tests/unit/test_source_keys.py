"""Names of sources in settings, with slashes in the names of jobs and operators."""

from __future__ import annotations

import pytest

from include.domain.source_keys import SourceName, find_source, group_operators, name_nearest

ROWS = [
    ("orders", "Source: orders", "1" * 32),
    ("team-a/orders", "Source: orders", "1" * 32),
    ("team-a", "orders/Source: clicks", "2" * 32),
    ("paths", "Source: a/b", "3" * 32),
]
JOBS = group_operators(ROWS)


@pytest.mark.parametrize(
    ("key", "job", "operator"),
    [
        ("orders/Source: orders", "orders", "Source: orders"),
        ("team-a/orders/Source: orders", "team-a/orders", "Source: orders"),
        ("team-a/orders/" + "1" * 32, "team-a/orders", "1" * 32),
        ("team-a/orders/Source: clicks", "team-a", "orders/Source: clicks"),  # the longest job has no such operator
        ("paths/Source: a/b", "paths", "Source: a/b"),
    ],
)
def test_a_key_is_taken_apart_where_a_known_job_has_the_operator(key, job, operator):
    assert find_source(key, JOBS) == SourceName(job, operator)


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("oders/Source: orders", '"orders/Source: orders"'),
        ("team-b/orders/Source: orders", '"team-a/orders/Source: orders"'),
        ("orders/Source: order", '"orders/Source: orders"'),
        ("Orders/source: orders", '"orders/Source: orders"'),
    ],
)
def test_a_key_that_means_no_known_source_has_a_nearest_one(key, nearest):
    assert find_source(key, JOBS) is None
    assert nearest in name_nearest(key, JOBS)


def test_of_a_cluster_without_known_jobs_only_a_single_slash_can_be_read():
    assert find_source("orders/Source: orders", {}) == SourceName("orders", "Source: orders")
    assert find_source("team-a/orders/Source: orders", {}) is None
    assert name_nearest("team-a/orders/Source: orders", {}) == "no job is known yet"
