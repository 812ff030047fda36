"""Which cells of the papers' pages have another verdict than at a commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.papers.changes import PAGE, format_changes, main, read_cells
from benchmarks.papers.document import NAMES

HEAD = "| row | column | published | ours | unit | verdict |\n|---|---|---|---|---|---|\n"
BEFORE = f"""# DS2, cell by cell

In all: nothing.

## Section 4: steps

- Tolerance 10%: a reason

{HEAD}| a \\| b | steps | 2 | 2 | steps | agrees |
| c | steps | 2 | 9 ± 1 |  | **differs**: nobody: knows |
| c | steps | 3 | 3 | steps | agrees |
| old | steps | - | 1 | steps | ours alone |
"""
AFTER = (
    BEFORE.replace("| steps | agrees |\n| c", "| steps | reading chosen: of two |\n| c")
    .replace("9 ± 1 |  | **differs**: nobody: knows", "2 |  | agrees")
    .replace("| old |", "| young |")
)


def test_every_cell_of_a_page_is_read_with_its_verdict_and_reason() -> None:
    cells = read_cells(BEFORE)
    assert [key[1:] for key in cells] == [
        ("a \\| b", "steps", 1),
        ("c", "steps", 1),
        ("c", "steps", 2),
        ("old", "steps", 1),
    ]
    assert {key[0] for key in cells} == {"Section 4: steps"}
    differs = cells["Section 4: steps", "c", "steps", 1]
    assert (differs.ours, differs.verdict, differs.reason) == ("9 ± 1", "differs", "nobody: knows")


def test_changed_cells_come_first_and_those_without_a_match_are_new_or_gone() -> None:
    lines = list(format_changes("DS2", read_cells(BEFORE), read_cells(AFTER)))
    assert "| differs | 1 | 0 |" in lines
    assert "| agrees | 2 | 2 |" in lines
    assert "2 cells have another verdict, 1 are new, 1 are gone." in lines
    assert [line for line in lines if line.startswith("| Section 4")] == [
        "| Section 4: steps | a \\| b | steps | agrees (2) | reading chosen (2) | of two |",
        "| Section 4: steps | c | steps | differs (9 ± 1) | agrees (2) | - |",
        "| Section 4: steps | young | steps | new | ours alone (1) | - |",
        "| Section 4: steps | old | steps | ours alone (1) | gone | - |",
    ]


def test_the_page_compares_the_pages_of_a_commit_with_those_that_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for paper in NAMES:
        (tmp_path / f"{paper}.md").write_text(BEFORE)
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "pages"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    (tmp_path / "ds2.md").write_text(AFTER)
    assert main(["--base", "HEAD", "--pages", str(tmp_path)]) == 0
    page = (tmp_path / PAGE).read_text()
    assert page.count("0 cells have another verdict, 0 are new, 0 are gone.") == len(NAMES) - 1
    assert page.count("2 cells have another verdict, 1 are new, 1 are gone.") == 1
    with pytest.raises(SystemExit):
        main(["--base", "no such commit", "--pages", str(tmp_path)])
    assert "git knows no commit 'no such commit'" in capsys.readouterr().err
