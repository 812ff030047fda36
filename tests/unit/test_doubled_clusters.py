"""One cluster under two names, and two under one: an error that names both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pretended_prometheus import T0, World, pretended_prometheus

from include.metric_sources.prometheus.client import PrometheusClient, PrometheusError, QueryRange
from include.metric_sources.prometheus.measurements import ClusterMeasurements, fetch
from include.settings import Settings, SettingsError, check_settings
from include.settings.sources import Prometheus

Series = tuple[str, dict[str, str], float]


@dataclass
class Doubled(World):
    """A server that shows every series of the job twice, the second time with other labels, and another pace."""

    other: tuple[tuple[str, str], ...] = ()
    pace: float = 2.0

    def _series(self) -> Iterator[Series]:
        for name, labels, per_s in super()._series():
            yield name, labels, per_s
            if "job_id" in labels:
                changed = {key: value for key, value in self.other if key in labels or key == "host"}
                yield name, {**labels, **changed}, per_s * self.pace


def ask(world: World, *matchers: str) -> ClusterMeasurements:
    with pretended_prometheus(world) as url:
        server = Prometheus(url=url, matchers=matchers)
        client = PrometheusClient("c", server, sleep=lambda _: None)
        try:
            return fetch(client, server, QueryRange(T0, T0 + 1800, server.step_s))
        finally:
            client.close()


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ((("job_name", "billing"), ("tm_id", "u")), "the jobs 'orders' and 'billing' have one id"),
        ((("job_name", "billing"),), "the jobs 'orders' and 'billing' have one id"),
        ((("tm_id", "u"),), "TaskManagers 't' and 'u' both run job"),
        ((("tm_id", "u"), ("host", "elsewhere")), "TaskManagers 't' and 'u' both run job"),
    ],
)
def test_two_clusters_in_one_answer_are_an_error_that_names_both(other: Any, named: str) -> None:
    with pytest.raises(PrometheusError, match=named) as caught:
        ask(Doubled(other=other))
    assert "select one cluster with matchers" in str(caught.value)


def test_matchers_tell_two_clusters_apart() -> None:
    result = ask(Doubled(other=(("job_name", "billing"), ("host", "b"))), 'job_name="orders"')
    assert {job.label for job in result.jobs.values()} == {"orders"}


def test_what_a_lost_taskmanager_leaves_behind_is_no_second_set() -> None:
    """A gateway shows for hours what was pushed last."""
    assert ask(Doubled(other=(("tm_id", "u"),), pace=0.0)).jobs


def test_a_pair_of_scrapers_shows_one_cluster_twice() -> None:
    assert ask(Doubled(other=(("host", "second-scraper"),), pace=1.0)).jobs


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        ({"rest_url": "http://flink:8081"}, {"rest_url": "http://flink:8081/"}, "rest_url"),
        ({"rest_url": "http://flink"}, {"rest_url": "http://FLINK:80"}, "rest_url"),
        ({"rest_url": "https://flink/a"}, {"rest_url": "https://flink:443/a/"}, "rest_url"),
        ({"prometheus": {"url": "http://p:9090"}}, {"prometheus": {"url": "http://p:9090/"}}, "prometheus"),
        ({"rest_url": "http://flink:8081"}, {"rest_url": "http://flink:8082"}, None),
        ({"rest_url": "http://flink/a"}, {"rest_url": "http://flink/b"}, None),
        (
            {"prometheus": {"url": "http://p", "matchers": ['ns="a"']}},
            {"prometheus": {"url": "http://p", "matchers": ['ns="b"']}},
            None,
        ),
        ({}, {}, None),
    ],
)
def test_a_cluster_that_is_entered_twice_is_refused(first: Any, second: Any, named: str | None) -> None:
    given = {"clusters": {"prod": first, "live": second}}
    if named is None:
        assert isinstance(check_settings(given), Settings)
        return
    with pytest.raises(SettingsError, match=f"clusters.prod and clusters.live have the same {named}"):
        check_settings(given)
