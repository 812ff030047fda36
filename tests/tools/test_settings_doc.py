"""docs/settings.md is what the settings say, and says all of it."""

from __future__ import annotations

import re

from include.policy_catalogue import catalogue
from include.settings import Settings
from include.settings.refusals import key_paths
from tools.settings_doc import LAB_PAGE, PAGE, lab_page, main, page


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run make docs"
    assert LAB_PAGE.read_text(encoding="utf-8") == lab_page(), "run make docs"
    assert main(["--check"]) == 0


def test_every_key_stands_there_with_its_meaning() -> None:
    lines = [*page().splitlines(), *lab_page().splitlines()]
    for path in key_paths(Settings):
        if path == "policies":
            continue
        section, _, key = path.rpartition(".")
        heading = next(at for at, line in enumerate(lines) if line.startswith("## ") and f"[{section}]" in line)
        below = lines[heading:]
        row = next(line for line in below if re.match(rf"- `{key}[` ]", line))
        assert re.search(r"(`|required): .", row), row
    of_policies = [line for line in lab_page().splitlines() if line.startswith("## ")]
    for name, entry in catalogue().items():
        assert any(f"[policies.{name}]" in line for line in of_policies) == (entry.parameters is not None)
    assert not [line for line in lines if re.fullmatch(r"- `[^`]*`(?:, required)?", line)]


def test_no_section_has_more_than_fourteen_keys() -> None:
    def sizes(model: type, path: str = "") -> None:
        assert len(model.model_fields) <= 12 or not path, path  # type: ignore[attr-defined]

    counts: dict[str, int] = {}
    for path in key_paths(Settings):
        section = path.rpartition(".")[0]
        counts[section] = counts.get(section, 0) + 1
    assert max(counts.values()) <= 14
