"""``python -m benchmarks.papers``: what runs, what is printed, what is written."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from papers_cells import registered_cells
from rich.console import Console

from benchmarks.papers import __main__ as command
from benchmarks.papers.cells import Cell
from benchmarks.papers.printing import difference, number, plain, read, tables_of, write

CELLS = [
    Cell("ds2", "5.2", "DS2", "steps", 1, 1, "reconfigurations"),
    Cell("ds2", "4", "Q1", "runs", 18.0, 20, "runs", seeds=3, spread=0.5),
    Cell("ds2", "5.2", "Dhalion", "steps", 3, None, "reconfigurations"),
]
Tables = Callable[[Callable[[str], None], Path], list[Cell]]


def printed(cells: list[Cell]) -> str:
    console = Console(file=io.StringIO(), width=140)
    console.print(*tables_of(cells))
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Experiments that return the figures that are asked for and take no time; the papers asked for."""
    names: list[str] = []

    def experiments_of(paper: str) -> Tables:
        def tables(progress: Callable[[str], None], out: Path) -> list[Cell]:
            progress(f"{paper} [under way]")
            (out / f"{paper}.png").write_bytes(b"")
            names.append(paper)
            return [Cell(paper, "1", "row", "column", 1.0, 2.0, "1"), *registered_cells(paper)]

        return tables

    monkeypatch.setattr(command, "experiments_of", experiments_of)
    monkeypatch.delenv("PAPER", raising=False)
    monkeypatch.setattr(command, "PROJECT", tmp_path)  # whose pages are written when no other folder is given
    return names


@pytest.mark.long
def test_all_papers_run_unless_one_is_named(asked: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert command.main(["--out", str(tmp_path / "all")]) == 0
    assert asked == list(command.PAPERS)
    written = json.loads((tmp_path / "all" / "papers.json").read_text())
    assert list(dict.fromkeys(one["paper"] for one in written)) == list(command.PAPERS)
    assert (tmp_path / command.PAGES / "papers.md").exists()
    asked.clear()
    monkeypatch.setenv("PAPER", "phoebe")
    command.main(["--out", str(tmp_path)])
    command.main(["--out", str(tmp_path), "--paper", "ds2, conttune"])
    assert asked == ["phoebe", "ds2", "conttune"]
    monkeypatch.setenv("PAPER", "")  # as make passes it on when it is not given
    asked.clear()
    command.main(["--out", str(tmp_path)])
    assert len(asked) == len(command.PAPERS)


def test_progress_tables_and_files_are_shown(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "of_before.png").write_bytes(b"")
    os.utime(tmp_path / "of_before.png", (0, 0))
    command.main(["--out", str(tmp_path), "--paper", "ds2"])
    shown = capsys.readouterr().out
    for part in ("ds2 [under way]", "ds2, 1", "-1 (-50.0%)", " figures in ", "ds2.png"):
        assert part in shown
    assert "of_before.png" not in shown


def test_an_unknown_paper_is_refused_before_anything_runs(
    asked: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.main(["--paper", "ds3", "--out", str(tmp_path)])
    assert stopped.value.code == 2
    assert "no such paper: ds3" in capsys.readouterr().err
    assert not asked


def test_what_is_done_is_shown_and_written_when_a_later_paper_fails(
    asked: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = command.experiments_of

    def broken(paper: str) -> Tables:
        if paper == "conttune":
            raise RuntimeError("no curves")
        return whole(paper)

    monkeypatch.setattr(command, "experiments_of", broken)
    with pytest.raises(RuntimeError, match="no curves"):
        command.main(["--out", str(tmp_path)])
    assert {one["paper"] for one in json.loads((tmp_path / "papers.json").read_text())} == {"ds2"}
    assert "ds2, 1" in capsys.readouterr().out


def test_a_paper_is_imported_when_it_is_asked_for() -> None:
    from benchmarks.papers import ds2

    assert command.experiments_of("ds2") is ds2.tables


def test_cells_are_grouped_by_table_with_their_difference() -> None:
    text = printed(CELLS)
    assert len(tables_of(CELLS)) == 2
    assert text.index("ds2, 5.2") < text.index("Dhalion") < text.index("ds2, 4")
    assert "-2 (-10.0%)" in text
    assert "0.5" in text


def test_figures_are_short() -> None:
    assert [number(value) for value in (None, math.nan, 3, 0.16314, 12345.6, 2e6, -0.5)] == [
        "-",
        "-",
        "3",
        "0.1631",
        "12,346",
        "2,000,000",
        "-0.5",
    ]


def test_differences_are_absolute_and_relative() -> None:
    def of(ours: float, published: float | None) -> str:
        return difference(Cell("ds2", "1", "row", "column", ours, published, "1"))

    assert (of(3, None), of(math.nan, 2), of(2, 2)) == ("", "", "0")
    assert (of(3, 2), of(1, 2), of(3, 0), of(-3, -2)) == ("+1 (+50.0%)", "-1 (-50.0%)", "+3", "-1 (-50.0%)")


def test_the_file_is_json_with_the_agreed_keys_whatever_numbers_come_in(tmp_path: Path) -> None:
    odd = Cell("ds2", "1", "row", "column", np.float64(math.nan), np.int64(3), "1", np.int64(2), math.inf)  # type: ignore[arg-type]
    path = tmp_path / "deep" / "papers.json"
    write([odd, CELLS[1]], path)
    first, second = json.loads(path.read_text())
    assert first == {
        "paper": "ds2",
        "table": "1",
        "row": "row",
        "column": "column",
        "ours": None,
        "published": 3.0,
        "unit": "1",
        "seeds": 2,
        "spread": None,
    }
    assert second == plain(CELLS[1])
    assert [one.name for one in path.parent.iterdir()] == ["papers.json"]


def test_earlier_figures_are_judged_again_without_a_run(asked: list[str], tmp_path: Path) -> None:
    command.main(["--out", str(tmp_path), "--pages", str(tmp_path / "run"), "--paper", "dragster"])
    asked.clear()
    of_run, again = tmp_path / "papers.json", tmp_path / "again"
    assert command.main(["--results", str(of_run), "--pages", str(again), "--paper", "dragster"]) == 0
    assert asked == []
    assert (again / "dragster.md").read_text() == (tmp_path / "run" / "dragster.md").read_text()
    odd = Cell("ds2", "1", "row", "column", math.nan, 3.0, "1")
    write([odd, CELLS[1]], of_run)
    first, second = read(of_run)
    assert math.isnan(first.ours)
    assert second == CELLS[1]


def test_a_file_without_figures_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "papers.json").write_text('[{"row": "x"}]')
    with pytest.raises(SystemExit):
        command.main(["--results", str(tmp_path / "papers.json"), "--out", str(tmp_path)])
    assert "no list of figures" in capsys.readouterr().err
