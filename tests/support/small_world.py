"""A small history and everything a stage needs to run on it by spark-submit, for the end-to-end tests."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from delta_tables import read_rows

from cli.embedded import below
from include.settings import load_settings
from include.spark.submission import prepare_submission
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.tables import TABLES
from lab.commands.history import HistoryRequest, write_history
from lab.commands.spark_application import form_argv

AS_OF = datetime(2026, 11, 20, 19, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class World:
    """One directory with the lake, models and plans of one pipeline; the raw files may be another world's.

    Attributes:
        out: the directory.
        raw: root of the raw files.
        master: of Spark.
        variables: more of the environment.
    """

    out: Path
    raw: Path
    master: str = "local[2]"
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The variables under which stages work in this world."""
        own = below(self.out) | {"TIDEWISE__PATHS__RAW": str(self.raw), "TIDEWISE__SPARK__DRIVER_MEMORY": "2g"}
        return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | own | self.variables

    def start(self, request: StageRequest, log: Path, *later: Stage) -> subprocess.Popen[bytes]:
        """Submit a stage, and later ones of the same times with it, in a process group of its own."""
        before = dict(os.environ)
        os.environ.update(self.environment)
        try:
            submission = prepare_submission(load_settings(), self.master)
        finally:
            os.environ.clear()
            os.environ.update(before)
        with log.open("wb") as output:
            return subprocess.Popen(
                submission.command(form_argv([request, *(replace(request, stage=stage) for stage in later)])),
                cwd=self.out,
                env=self.environment | submission.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def complete(self, request: StageRequest, log: Path, *later: Stage) -> dict[str, Any]:
        """Run a stage to its end, and the later ones in the same application; returns the first one's counts."""
        code = self.start(request, log, *later).wait(timeout=300 * (1 + len(later)))
        assert code == 0, log.read_text(errors="replace")[-4000:]
        return json.loads((self.out / "stages" / f"{request.stage}.json").read_text())

    def rows(self) -> dict[str, list[str]]:
        """Return every table that exists as sorted rows."""
        return {table.name: rows for table in TABLES if (rows := read_rows(self.out / "lake", table)) is not None}


def write_small_history(raw: Path, hours: int, jobs: int = 3, operators: int = 4) -> None:
    """Write the raw payloads of a few jobs, ending at ``AS_OF``."""
    write_history(HistoryRequest(hours=hours, end=AS_OF, raw=raw, scale_jobs=jobs, operators=operators), workers=1)
