"""Real clusters of Flink 1.18 to 2.3 and of other kinds: polled, rescaled, refused, a TaskManager lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.versions.__main__ import VERSIONS, main
from benchmarks.versions.results import Results, load_results
from benchmarks.versions.situations import SITUATIONS

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


def run(out: Path, *arguments: str) -> Results:
    assert main([*arguments, "--out", str(out), "--document", str(out / "versions.md")]) == 0
    return load_results(out / "results.json")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_is_polled_planned_rescaled_and_survives(version, tmp_path):
    assert (
        main(["--version", version, "--situation", "--out", str(tmp_path), "--document", str(tmp_path / "t.md")]) == 0
    )
    row = load_results(tmp_path / "results.json").versions[version]
    assert {check for check, observed in row.items() if observed.is_right} == set(row)
    assert "enrich" in row["applied step"].text
    assert "`no_free_slots`" in row["refused"].text
    assert row["refused by Flink"].text.startswith("400")
    assert ("UPDATE_REQUIREMENT" in row["rescale history"].text) == (version == "2.3.0")


@pytest.mark.parametrize("name", SITUATIONS)
def test_other_clusters_are_as_they_have_to_be(name, tmp_path):
    _, observed = run(tmp_path, "--version", "--situation", name).situations[name]
    assert observed.is_right, observed.text
