"""What a run of `make chaos` sets up and expects: settings in every state, expectations, counts of one checkpoint."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.chaos.catalogue import CATALOGUE
from benchmarks.chaos.invariants import Record, find_violations
from benchmarks.chaos.jobs import OPTIONS, PLANNED, Jobs
from benchmarks.chaos.outcome import Outcome
from benchmarks.chaos.report import write_expected
from benchmarks.chaos.run_settings import CLUSTER, LONG, SHORT, Conditions, RunSettings
from benchmarks.chaos.scene import CONFIRMED, HELD, Fault
from benchmarks.chaos.snapshot_counts import SnapshotCounts, SnapshotWatch, find_difference
from benchmarks.chaos.world import Span, World, Wrong
from include.flink.faults import FlinkUnreachableError
from include.settings import check_settings
from lab.local_flink.load import AGGREGATE, COUNTED_SINK, SOURCE, LoadTopology


def test_every_fault_says_before_the_run_how_it_may_end(tmp_path: Path) -> None:
    names = [fault.name for fault in CATALOGUE]
    assert len(names) == len(set(names)) >= 58
    assert [fault.name for fault in CATALOGUE if not fault.expected] == []
    text = write_expected(CATALOGUE, tmp_path).read_text()
    for fault in CATALOGUE:
        assert f"| {fault.name} | {' or '.join(fault.expected)} |" in text


def test_an_outcome_is_expected_by_its_verdict_and_reason() -> None:
    def expects(expected: tuple[str, ...], outcome: Outcome) -> bool:
        return Fault("f", "g", lambda _: None, expected).expects(outcome)  # type: ignore[arg-type, return-value]

    assert expects(CONFIRMED, Outcome("confirmed"))
    assert expects(CONFIRMED, Outcome("confirmed", "late_request"))
    assert not expects(CONFIRMED, Outcome("held", "held"))
    assert expects(HELD, Outcome("held", "foreign_change"))
    assert expects(("refused: *checkpoint*",), Outcome("refused", "checkpoints_off"))
    assert not expects(("refused: *checkpoint*",), Outcome("refused", "no_free_slots"))
    assert not expects(("rolled back",), Outcome("unsettled", "rolled back"))


def test_three_jobs_cannot_all_have_what_they_may_want_and_take_checkpoints_as_life_does() -> None:
    assert 2 * LONG.slots < 3 * len(OPTIONS) <= 2 * SHORT.slots
    assert LONG.checkpoint_every_s == 10.0
    assert (SHORT.confirm_s, SHORT.settles_s, SHORT.valid_s) == (18.0, 240.0, 150.0)
    assert LONG.confirm_s > SHORT.confirm_s + 3 * LONG.checkpoint_every_s - 1
    assert Conditions(300.0).valid_s > Conditions(300.0).confirm_s > 900.0
    assert {options.form for options in OPTIONS.values()} == {LoadTopology.COUNTED}
    assert all(options.chaining for options in OPTIONS.values())


STATES: dict[str, Callable[[RunSettings], AbstractContextManager[None]]] = {
    "held": lambda settings: settings.holding(PLANNED[0]),
    "off": lambda settings: settings.switched_off(),
    "bounded": lambda settings: settings.bounded(2),
    "budgeted": lambda settings: settings.budgeted(7),
    "unnamed": lambda settings: settings.unnamed(),
}


def test_the_settings_can_be_used_in_each_state_and_are_put_right_again(tmp_path: Path) -> None:
    settings = RunSettings(tmp_path, "http://127.0.0.1:1", list(PLANNED), LONG)
    plain = settings.path.read_text()

    def read() -> dict[str, Any]:
        return tomllib.loads(settings.path.read_text())

    result = check_settings(read())
    assert result.apply.confirm_timeout_s == LONG.confirm_s
    assert result.clusters[CLUSTER].slots_total == 1000  # no budget: a key that went would go on to restrain
    observed = {}
    for name, state in STATES.items():
        with state(settings):
            observed[name] = read()
        assert settings.path.read_text() == plain, name
    assert CLUSTER not in observed.pop("unnamed").get("clusters", {})
    made = {name: check_settings(text) for name, text in observed.items()}
    assert made["held"].job_limits(CLUSTER, PLANNED[0]).is_held
    assert made["off"].clusters[CLUSTER].limits.mode == "off"
    assert made["bounded"].clusters[CLUSTER].slots_max == 2
    assert made["budgeted"].clusters[CLUSTER].slots_total == 7
    with settings.deleted():
        assert not settings.path.exists()
    assert settings.path.read_text() == plain
    with settings.holding(PLANNED[0]):
        held = settings.path.read_text()
        with settings.lifting(PLANNED[0]):
            assert settings.path.read_text() == plain
        assert settings.path.read_text() == held


@pytest.mark.parametrize(
    ("counts", "named"),
    [
        (SnapshotCounts(7, 1000, 1000, 40, 96), ""),
        (SnapshotCounts(7, 1000, 999, 39, 96), "999 were counted"),  # one was lost before the state
        (SnapshotCounts(7, 1000, 1001, 41, 96), "1001 were counted"),  # or repeated
        (SnapshotCounts(7, 1000, 1000, 40, 95), "950 have come to the sink"),
        (SnapshotCounts(7, 1000, 1000, 41, 96), "41 are held"),
    ],
)
def test_in_one_checkpoint_what_came_in_is_what_went_out_and_the_state(counts: SnapshotCounts, named: str) -> None:
    reported = find_difference(counts, 10)
    assert (named in reported) if named else reported == ""


class Metrics:
    """The REST replies about one job with two subtasks of the aggregate."""

    def __init__(self) -> None:
        self.ids = {"s": (7, 7), "a": (7, 7), "r": (7, 7)}
        self.sums = {
            "emittedAtSnapshot": 1000,
            "countedAtSnapshot": 1000,
            "heldAtSnapshot": 40,
            "receivedAtSnapshot": 96,
        }
        self.is_silent, self.lacks = False, ""
        self.transport = SimpleNamespace(get_json=self.get_json)

    def job(self, _: str) -> dict[str, Any]:
        places = {SOURCE: "s", AGGREGATE: "a", COUNTED_SINK: "r", "enrich": "e"}
        return {"vertices": [{"name": name, "id": place} for name, place in places.items()]}

    def get_json(self, path: str) -> list[dict[str, Any]]:
        if self.is_silent:
            raise FlinkUnreachableError("here", 1, "gone")
        vertex = path.split("/")[4]
        own = {
            "s": ["Source__orders.emittedAtSnapshot"],
            "a": ["aggregate.countedAtSnapshot", "aggregate.heldAtSnapshot"],
        }
        names = [*own.get(vertex, ["received.receivedAtSnapshot"]), "x.snapshotId", "numRecordsIn"]
        if "get=" not in path:
            return [{"id": name} for name in names if name.rpartition(".")[2] != self.lacks]
        least, most = self.ids[vertex]
        return [
            {"id": name, "min": least, "max": most, "sum": self.sums.get(name.rpartition(".")[2], 0)}
            for name in names[:-1]
        ]


def test_counts_are_those_of_one_checkpoint_or_none() -> None:
    metrics = Metrics()
    watch = SnapshotWatch(metrics)  # type: ignore[arg-type]
    metrics.lacks = "snapshotId"  # the job has just been started
    watch.poll("j")
    metrics.lacks = ""
    metrics.ids["a"] = (6, 7)  # one subtask is behind
    watch.poll("j")
    metrics.ids["a"] = (7, 7)
    metrics.ids["r"] = (6, 6)  # the sink's were read a little earlier
    watch.poll("j")
    metrics.ids = dict.fromkeys(metrics.ids, (0, 0))  # a restart, before its first checkpoint
    watch.poll("j")
    assert watch.seen == {}
    metrics.ids = dict.fromkeys(metrics.ids, (8, 8))
    watch.poll("j")
    metrics.is_silent = True
    watch.poll("j")
    assert watch.seen == {"j": {8: SnapshotCounts(8, 1000, 1000, 40, 96)}}
    assert list(watch.find_differences({"j": 10})) == []
    metrics.is_silent = False
    metrics.sums["receivedAtSnapshot"] = 95
    metrics.ids = dict.fromkeys(metrics.ids, (9, 9))
    watch.poll("j")
    (result,) = watch.find_differences({"j": 10})
    assert result.startswith("j: in checkpoint 9 the source has emitted 1000 records")
    metrics.ids = dict.fromkeys(metrics.ids, (10, 10))  # what is lost is missing later, too
    watch.poll("j")
    assert len(list(watch.find_differences({"j": 10}))) == 2
    metrics.sums["receivedAtSnapshot"] = 96  # what was read half way is not
    metrics.ids = dict.fromkeys(metrics.ids, (11, 11))
    watch.poll("j")
    assert [one.split(" the ")[0] for one in watch.find_differences({"j": 10})] == ["j: in checkpoint 9"]


def test_what_a_fault_has_seen_is_a_violation_and_a_silence_says_why() -> None:
    wrong = Wrong("no request destroys a savepoint", 5.0, "clicks: suspended")
    record = Record([], [], {}, [], [Span(None, 0.0, 9.0, "checkpoints are off")], [wrong])
    assert [(one.invariant, one.at_s) for one in find_violations(record)] == [(wrong.invariant, 5.0)]


def test_ticks_go_on_when_the_folder_of_the_leases_is_removed(tmp_path: Path) -> None:
    terms = tmp_path / "lake" / "ops" / "leases" / f"cluster={CLUSTER}"

    def take(number: int) -> None:
        terms.mkdir(parents=True, exist_ok=True)
        (terms / f"{number:020}.json").write_text("{}")

    world = World(tmp_path, *[None] * 9, LONG)  # type: ignore[arg-type]
    assert world.ticks == 0
    take(41)
    assert world.ticks == 41
    (terms / f"{41:020}.json").unlink()
    take(1)
    assert world.ticks == 42
    take(3)
    assert world.ticks == 44


def test_a_job_is_told_what_to_do_wrong_by_a_file(tmp_path: Path) -> None:
    jobs = Jobs(SimpleNamespace(work_dir=tmp_path))  # type: ignore[arg-type]
    file = tmp_path / "behaviour-clicks.properties"
    with jobs.behaving("clicks", fail_at_parallelism=3, snapshot_ms=500):
        assert file.read_text() == "fail_at_parallelism=3\nsnapshot_ms=500\n"
    assert not file.exists()


def test_checkpoints_fail_while_a_file_stands_in_the_place_of_their_folder(tmp_path: Path) -> None:
    jobs = Jobs(SimpleNamespace(work_dir=tmp_path))  # type: ignore[arg-type]
    jobs.ids["clicks"] = "f" * 32
    folder = tmp_path / "checkpoints" / ("f" * 32)
    (folder / "chk-7").mkdir(parents=True)
    with jobs.breaking_checkpoints("clicks"), pytest.raises(NotADirectoryError):
        (folder / "chk-8").mkdir()
    assert (folder / "chk-7").is_dir()
