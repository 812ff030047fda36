"""Two runs are compared by their rows: what names the code may differ, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tools.compare_runs import main


def write_run(out: Path, rates: list[float], code: str, steps: int = 1) -> Path:
    rows = {"job": ["orders"] * len(rates), "rate_per_s": rates, "code_version": [code] * len(rates)}
    write_deltalake(str(out / "lake" / "gold" / "plans"), pa.table(rows))
    (out / "plans.json").write_text(json.dumps([{"job": "orders", "code_version": code}] * steps))
    return out


def test_runs_of_other_code_with_the_same_rows_are_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = write_run(tmp_path / "a", [1.0, 2.0], "x"), write_run(tmp_path / "b", [2.0, 1.0], "y")
    assert main([str(first), str(second)]) == 0
    assert "compare: 1 of 1 tables have the same rows" in capsys.readouterr().out


@pytest.mark.parametrize(("rates", "steps"), [([1.0], 1), ([1.0, 2.5], 1), ([1.0, 2.0, 2.0], 1), ([1.0, 2.0], 2)])
def test_a_row_that_differs_is_counted(tmp_path: Path, rates: list[float], steps: int) -> None:
    first, second = write_run(tmp_path / "a", [1.0, 2.0], "x"), write_run(tmp_path / "b", rates, "x", steps)
    assert main([str(first), str(second)]) == 1
    assert main([str(second), str(first)]) == 1


def test_a_table_that_one_run_lacks_is_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = write_run(tmp_path / "a", [1.0], "x"), write_run(tmp_path / "b", [1.0], "x")
    write_deltalake(str(second / "lake" / "silver" / "jobs"), pa.table({"job": ["orders"]}))
    assert main([str(first), str(second)]) == 1
    assert "silver/jobs: 0 rows, only in the first 0, only in the second 1" in capsys.readouterr().out
