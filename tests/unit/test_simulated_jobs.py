"""The TOML files of simulated jobs, and how wrong ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.commands.simulated_jobs import SIMULATED_JOBS, load_simulated_jobs
from lab.simulation.spec import Ship, SpecError

JOB = """
[[jobs]]
name = "orders"
state_bytes_per_record = 24.0
operators = [
  { name = "Source: orders", need = 5 },
  { name = "dedupe", need = 7, upstream = ["Source: orders"], selectivity = 0.5, ship = "HASH" },
]
loads = [{ peak_per_s = 1000, parts = [{ trace = "dsp_taxi", hours = 2 }] }]
timetable = [{ hour = 0, load_share = 0.6 }]
"""


def test_shipped_jobs_are_thirteen_in_the_order_of_their_files() -> None:
    names = [job.spec.name for job in load_simulated_jobs()]
    assert len(set(names)) == len(names) == 13
    written = [line for path in sorted(SIMULATED_JOBS.glob("*.toml")) for line in path.read_text().splitlines()]
    assert [f'name = "{name}"' for name in names] == [line for line in written if line.startswith("name = ")]


def test_a_job_is_read_with_its_operators_load_and_timetable(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(JOB)
    (job,) = load_simulated_jobs(tmp_path)
    source, dedupe = job.spec.operators
    assert job.spec.state_bytes_per_record == 24.0
    assert (dedupe.upstream, dedupe.selectivity, dedupe.ship) == (("Source: orders",), 0.5, Ship.HASH)
    # The parallelism that it needs keeps it 80% busy at the peak.
    capacity = dedupe.per_subtask_per_s * 7 / (1 + dedupe.contention * 6)
    assert capacity == pytest.approx(1000 / 0.8)
    assert source.per_subtask_per_s * 5 > 1000
    assert [part.hours for part in job.loads[0].parts] == [2]
    assert job.timetable is not None
    assert job.timetable.slots[0].load_share == 0.6


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        ("need = 7", "needs = 7", "needs"),
        ('ship = "HASH"', 'ship = "RANDOM"', "RANDOM"),
        ("state_bytes_per_record", "state_bytes", "state_bytes"),
        ("loads =", "load =", "loads"),
        ("[[jobs]]", "[[job]]", "jobs"),
        ('name = "orders"', "name = ", "Invalid value"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_what_is_wrong(
    tmp_path: Path, right: str, wrong: str, why: str
) -> None:
    (tmp_path / "a.toml").write_text(JOB.replace(right, wrong))
    with pytest.raises(SpecError, match=rf"a\.toml.*{why}"):
        load_simulated_jobs(tmp_path)


def test_a_folder_without_jobs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no simulated jobs"):
        load_simulated_jobs(tmp_path)
