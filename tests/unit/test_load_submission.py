"""The load job is submitted once, however late the JobManager replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.flink.faults import FlinkUnreachableError
from lab.local_flink import load
from lab.local_flink.load import LoadOptions, submit_load


class SlowJobManager:
    """A client of a JobManager whose first replies are lost; what it was asked for is done all the same."""

    def __init__(self, *, lost_uploads: int = 0, is_start_lost: bool = False, starts: bool = True) -> None:
        self.lost_uploads, self.is_start_lost, self.starts = lost_uploads, is_start_lost, starts
        self.listed: list[dict[str, str]] = [{"jid": "old", "name": "orders", "state": "CANCELED"}]
        self.started = 0

    def upload_jar(self, jar: Path) -> str:
        self.lost_uploads -= 1
        if self.lost_uploads >= 0:
            raise FlinkUnreachableError("there", 1, "ReadTimeoutError")
        return "jar"

    def run_jar(self, jar_id: str, entry_class: str, arguments: list[str]) -> str:
        self.started += 1
        if self.starts:
            self.listed.append({"jid": "new", "name": "orders", "state": "CREATED"})
        if self.is_start_lost:
            raise FlinkUnreachableError("there", 1, "ReadTimeoutError")
        return "new"

    def jobs(self) -> dict[str, list[dict[str, str]]]:
        return {"jobs": self.listed}


@pytest.fixture(autouse=True)
def no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Building the job takes Java, and sleeping takes time; neither is what is asked here."""
    monkeypatch.setattr(load, "build_job", lambda home: Path("job.jar"))
    monkeypatch.setattr(load.time, "sleep", lambda seconds: None)


@pytest.mark.parametrize("given", [{}, {"lost_uploads": 2}, {"is_start_lost": True}])
def test_it_is_started_once(tmp_path: Path, given: dict[str, int]) -> None:
    client = SlowJobManager(**given)  # type: ignore[arg-type]
    assert submit_load(client, tmp_path, LoadOptions()) == "new"  # type: ignore[arg-type]
    assert client.started == 1


def test_what_never_starts_is_named(tmp_path: Path) -> None:
    client = SlowJobManager(is_start_lost=True, starts=False)
    with pytest.raises(FlinkUnreachableError):
        submit_load(client, tmp_path, LoadOptions(), within_s=0.05)  # type: ignore[arg-type]
    assert client.started == 1
