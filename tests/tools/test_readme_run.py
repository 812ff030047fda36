"""README shows a run of the policy that is the default."""

from __future__ import annotations

import hashlib
import json

from include.settings import Settings
from tools.readme_run import MARKS, PICTURE, README, write_part


def test_picture_and_line_are_of_the_default_policy() -> None:
    made = json.loads(PICTURE.with_suffix(".json").read_text(encoding="utf-8"))
    assert made["policy"] == Settings().planner.policy
    assert made["sha256"] == hashlib.sha256(PICTURE.read_bytes()).hexdigest(), "another picture than that of the run"
    part = README.read_text(encoding="utf-8").partition(MARKS[0])[2].partition(MARKS[1])[0]
    assert part.strip() == write_part(made)
    assert made["line"].startswith("run: 18 jobs, ")
    assert "late minute" in made["planned"]
    assert "slot-hours" in made["planned"]


def test_the_table_has_a_row_of_the_default_and_bold_is_nothing_else() -> None:
    rows = [line for line in README.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    bold = [row for row in rows if row.startswith("| **")]
    assert len(bold) == 1
    assert f"`{Settings().planner.policy}`" in bold[0]
