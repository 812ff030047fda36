"""Descriptions of runs, which are Markdown, on a terminal."""

from __future__ import annotations

from cli.printing import plain_note


def test_a_picture_is_the_name_of_its_file() -> None:
    note = "**Verdict: first.** `x` [y](z)\n\n![gate.png](get-artifact?path=gate.png&run_uuid=a1)\n- line"
    assert plain_note(note) == [
        "Verdict: first. `x` [y](z)",
        "",
        "gate.png, among the run's artifacts in MLflow",
        "- line",
    ]
