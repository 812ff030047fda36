"""Import of past hours and live collecting from a server whose answers are partial, empty or without times."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from held_objects import count_held
from pretended_prometheus import JOB, MAP, SOURCE, T0, World, pretended_prometheus

from cli import import_hours as command
from include.flink.raw_format import hour_directory, write_lines
from include.metric_sources.collection import CollectionError, collect_for
from include.metric_sources.prometheus import client as prometheus_client
from include.metric_sources.prometheus.client import PrometheusClient
from include.metric_sources.prometheus.graphs import GraphRegistry
from include.metric_sources.prometheus.source import LivePrometheusSource
from include.settings import Cluster, Paths, Settings
from include.settings.sources import Prometheus
from include.tables import FILES

HOUR = timedelta(hours=1)
START = datetime.fromtimestamp(T0, UTC)


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(prometheus_client, "_PARTIAL_PAUSE_S", 0.0)


def fill(url: str, raw: Path, monkeypatch, *arguments: str, hours: int = 3) -> int:
    monkeypatch.setenv("TIDEWISE__PATHS__RAW", str(raw))
    monkeypatch.setenv("TIDEWISE__CLUSTERS__c__PROMETHEUS__URL", url)
    monkeypatch.setenv("TIDEWISE__CLUSTERS__c__PROMETHEUS__REQUESTS_PER_S", "1000")
    stamps = [f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (START, START + hours * HOUR)]
    return command.main(["--from", stamps[0], "--to", stamps[1], *arguments])


def lines_of(raw: Path) -> dict[int, list[dict]]:
    """Hour after the start -> its lines."""
    result = {}
    for path in sorted(raw.rglob("*.jsonl.gz")):
        day, hour = path.parent.parent.name[5:], path.parent.name[5:]
        at = datetime.fromisoformat(f"{day}T{hour}:00:00+00:00")
        with gzip.open(path, "rt") as opened:
            result[int((at - START) / HOUR)] = [json.loads(line) for line in opened]
    return result


def parallelism(lines: list[dict]) -> set[int]:
    bodies = [json.loads(line["body"]) for line in lines if line["kind"] == "job"]
    return {one["parallelism"] for body in bodies for one in body["vertices"] if one["id"] == MAP}


@pytest.mark.parametrize(
    ("says", "named"), [({"warnings": ["store sidecar-3 is gone"]}, "sidecar-3"), ({"isPartial": True}, "isPartial")]
)
def test_nothing_is_written_of_a_partial_answer_and_all_of_a_later_whole_one(
    tmp_path, monkeypatch, capsys, says, named
):
    world = World(says=says, lost=frozenset({(MAP, 3)}))
    with pretended_prometheus(world) as url:
        assert fill(url, tmp_path, monkeypatch) == 1
        assert named in capsys.readouterr().err
        assert lines_of(tmp_path) == {}
        world.says, world.lost = {}, frozenset()
        assert fill(url, tmp_path, monkeypatch) == 0
    assert "3 hours written" in capsys.readouterr().out
    assert {hour: parallelism(lines) for hour, lines in lines_of(tmp_path).items()} == {0: {4}, 1: {4}, 2: {4}}


def test_answers_that_do_not_agree_are_partial(tmp_path, monkeypatch, capsys):
    with pretended_prometheus(World(silent=frozenset({(MAP, 2)}))) as url:
        assert fill(url, tmp_path, monkeypatch) == 1
    assert "no values of 1 of them" in capsys.readouterr().err
    assert lines_of(tmp_path) == {}


def test_hours_without_a_sample_are_named_and_asked_for_again(tmp_path, monkeypatch, capsys):
    """As an earlier release wrote them, too: a file without a line."""
    remaining = hour_directory(tmp_path, "c", START) / f"prometheus-{START:%Y%m%dT%H}.jsonl.gz"
    write_lines(remaining, ())
    world = World(since_s=T0 + 2 * 3600)
    with pretended_prometheus(world) as url:
        assert fill(url, tmp_path, monkeypatch) == 0
        reported = capsys.readouterr().out
        assert "1 hours written" in reported
        assert "no sample in 2026-11-18T11:00:00Z to 2026-11-18T13:00:00Z" in reported
        assert [hour for hour, lines in lines_of(tmp_path).items() if lines] == [2]
        world.since_s = T0
        assert fill(url, tmp_path, monkeypatch) == 0
    assert "2 hours written" in (reported := capsys.readouterr().out)
    assert "1 there already" in reported
    assert all(lines_of(tmp_path)[hour] for hour in range(3))


def test_an_hour_of_which_the_server_had_a_part_is_said_and_asked_for_again(tmp_path, monkeypatch, capsys):
    world = World(since_s=T0 + 3600 + 1800)  # half of the second hour
    with pretended_prometheus(world) as url:
        assert fill(url, tmp_path, monkeypatch) == 0
        reported = capsys.readouterr().out
        assert "2 hours written" in reported
        assert "fewer steps than an hour has in 2026-11-18T12:00:00Z to 2026-11-18T13:00:00Z" in reported
        part = lines_of(tmp_path)[1]
        assert fill(url, tmp_path, monkeypatch) == 0  # the server has no more yet: nothing changes
        assert "0 hours written" in capsys.readouterr().out
        assert lines_of(tmp_path)[1] == part
        world.since_s = T0
        assert fill(url, tmp_path, monkeypatch) == 0
        assert "2 hours written" in (reported := capsys.readouterr().out)
        assert "fewer steps" not in reported
        assert len(lines_of(tmp_path)[1]) > len(part)
        assert fill(url, tmp_path, monkeypatch) == 0
        assert "3 there already" in capsys.readouterr().out


@pytest.mark.parametrize(
    "world",
    [World(every_s=120), World(every_s=60, apart_s=20), World(has_jobs=False)],
    ids=["scraped every two minutes", "scraped apart", "no job runs"],
)
def test_a_whole_hour_is_done_however_it_was_scraped(tmp_path, monkeypatch, capsys, world) -> None:
    with pretended_prometheus(world) as url:
        assert fill(url, tmp_path, monkeypatch) == 0
        assert "fewer steps" not in capsys.readouterr().out
        assert fill(url, tmp_path, monkeypatch) == 0
    assert "3 there already" in capsys.readouterr().out


@pytest.mark.parametrize(("since_s", "until_s"), [(0, 1800), (1740, 3600), (0, 3300), (3540, 3600)])
def test_a_part_of_an_hour_is_none_whatever_part_it_is(tmp_path, monkeypatch, capsys, since_s, until_s) -> None:
    """Vertices that are scraped apart have twice as many times as steps."""
    world = World(since_s=T0 + since_s, until_s=T0 + until_s, apart_s=20)
    with pretended_prometheus(world) as url:
        assert fill(url, tmp_path, monkeypatch, hours=1) == 0
        assert "fewer steps than an hour has in 2026-11-18T11" in capsys.readouterr().out
        world.since_s, world.until_s = T0 - 7200, float("inf")
        assert fill(url, tmp_path, monkeypatch, hours=1) == 0
    assert "fewer steps" not in (reported := capsys.readouterr().out)
    assert "1 hours written" in reported


def test_times_of_zero_are_refused_by_name(tmp_path, monkeypatch, capsys):
    with pretended_prometheus(World(are_times_zero=True)) as url:
        assert fill(url, tmp_path, monkeypatch) == 1
    assert "timestamp()" in capsys.readouterr().err
    assert lines_of(tmp_path) == {}


def sums(lines: list[dict], vertex: str) -> dict[str, float]:
    bodies = [json.loads(line["body"]) for line in lines if line["vertex_id"] == vertex]
    return {one["id"]: one["sum"] for one in bodies[-1]}


def test_the_counters_of_source_operators_come_as_rest_names_them(tmp_path, monkeypatch):
    with pretended_prometheus(World()) as url:
        assert fill(url, tmp_path, monkeypatch, hours=1) == 0
    (lines,) = lines_of(tmp_path).values()
    reported = sums(lines, SOURCE)
    assert reported["Source__orders.numRecordsIn"] == 10 * reported["Source__orders.numRecordsOut"] > 0
    assert reported["numRecordsIn"] == reported["numRecordsOut"] == 0  # the chain is one vertex
    assert reported["Source__orders.pendingRecords"] == 10
    assert not any(name.startswith("filter.") for name in reported)
    assert not any("." in name for name in sums(lines, MAP))


def test_every_backlog_of_a_source_is_told(tmp_path, monkeypatch):
    groups = (("kafkaCluster_", {"kafkaCluster": "east"}, 100.0), ("kafkaCluster_", {"kafkaCluster": "west"}, 7.0))
    with pretended_prometheus(World(backlogs=groups)) as url:
        assert fill(url, tmp_path, monkeypatch, hours=1) == 0
    (lines,) = lines_of(tmp_path).values()
    reported = {name: value for name, value in sums(lines, SOURCE).items() if name.endswith("pendingRecords")}
    assert reported == {
        "Source__orders.kafkaCluster.east.pendingRecords": 200,
        "Source__orders.kafkaCluster.west.pendingRecords": 14,
    }


def test_two_sources_in_a_vertex_are_two_and_of_one_name_their_backlogs_add_up(tmp_path, monkeypatch):
    with pretended_prometheus(World(operator_names=("Source:_a", "Source:_b"))) as url:
        assert fill(url, tmp_path / "apart", monkeypatch, hours=1) == 0
    (lines,) = lines_of(tmp_path / "apart").values()
    reported = sums(lines, SOURCE)
    assert reported["Source__a.pendingRecords"] == reported["Source__b.pendingRecords"] == 10
    with pretended_prometheus(World(operator_names=("Source:_a", "Source:_a"))) as url:
        assert fill(url, tmp_path / "alike", monkeypatch, hours=1) == 0
    (lines,) = lines_of(tmp_path / "alike").values()
    reported = sums(lines, SOURCE)
    assert reported["Source__a.pendingRecords"] == 20
    assert "Source__a.numRecordsIn" not in reported  # whose it is nobody can tell


def collect(url: str, raw: Path, at_s: float):
    settings = Settings(paths=Paths(raw=str(raw)), clusters={"c": Cluster(prometheus=Prometheus(url=url))})
    return collect_for(settings, 0.0, lambda: at_s)


def test_live_collecting_writes_nothing_of_a_partial_or_empty_answer(tmp_path):
    for world, named in ((World(says={"isPartial": True}), "isPartial"), (World(since_s=T0 * 2), "not one sample")):
        with pretended_prometheus(world) as url, pytest.raises(CollectionError, match=named):
            collect(url, tmp_path, T0 + 1800.0)
    assert list(tmp_path.rglob("*.jsonl.gz")) == []
    with pretended_prometheus(World()) as url:
        assert collect(url, tmp_path, T0 + 1800.0).records > 0
    assert {line["job_id"] for line in lines_of(tmp_path)[0]} >= {JOB}


def test_a_process_of_months_forgets_the_jobs_that_have_gone():
    world, now_s, held = World(since_s=0.0), [0.0], list[int]()
    with pretended_prometheus(world) as url:
        server = Prometheus(url=url)
        source = LivePrometheusSource(
            PrometheusClient("c", server), "c", Cluster(prometheus=server), GraphRegistry(), clock=lambda: now_s[0]
        )
        for day in range(1, 9):
            world.job_id, now_s[0] = f"{day:032x}", T0 + 86_400.0 * day
            assert {record.job_id for record in source.poll().records} == {world.job_id, None}
            held.append(count_held(source))
    assert held[-1] <= held[2]


@pytest.mark.covers("harm input-less")
def test_hours_that_were_ingested_from_files_that_are_gone_are_left_alone_unless_forced(tmp_path, monkeypatch, capsys):
    """What a server still has of them would replace, once ingested, what the lake has."""
    lake = tmp_path / "lake"
    monkeypatch.setenv("TIDEWISE__PATHS__LAKE", str(lake))
    place = str(hour_directory(Path(), "c", START))
    rows = [
        {"cluster": cluster, "source_file": f"{place}/{name}", "lines": lines, "date": START.date(), "hour": hour}
        for cluster, name, lines, hour in [
            ("c", "rest-1.jsonl.gz", 40, START.hour),
            ("c", "kafka-1.jsonl.gz", 40, START.hour + 1),
            ("other", "rest-1.jsonl.gz", 40, START.hour + 1),
            ("c", "empty.jsonl.gz", 0, START.hour + 1),
            ("c", "prometheus-1.jsonl.gz", 40, START.hour + 2),  # deleted, to be read again
        ]
    ]
    table = pa.Table.from_pylist(rows).set_column(4, "hour", pa.array([row["hour"] for row in rows], pa.int32()))
    write_deltalake(lake / FILES.relative_path, table, partition_by=list(FILES.partition_by))
    raw = tmp_path / "raw"
    with pretended_prometheus(World()) as url:
        assert fill(url, raw, monkeypatch) == 0
        assert lines_of(raw).keys() == {1, 2}
        printed = capsys.readouterr().out
        assert "2 hours written" in printed
        assert "1 hours are left as ingested" in printed
        assert fill(url, raw, monkeypatch, "--force") == 0
    assert lines_of(raw).keys() == {0, 1, 2}
