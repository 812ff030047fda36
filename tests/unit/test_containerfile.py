"""The image has what the README asks for, and its layer of packages has all the code that installs them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TEXT = (REPOSITORY / "Containerfile").read_text().replace("\\\n", " ")
INSTALLS = r'^RUN python3 -c "(.*); install_python_packages\(\); install_flink\(\)"'


def test_the_system_packages_are_those_of_the_readme_without_the_browser_of_the_tests() -> None:
    (installed,) = re.findall(r"--no-install-recommends +(.*?) +&&", TEXT)
    (asked,) = re.findall(r"^apt-get install -y (.*)$", (REPOSITORY / "README.md").read_text(), re.MULTILINE)
    wanted = (set(asked.split()) - {"chromium", "default-jdk-headless"}) | {"openjdk-21-jdk-headless"}
    assert set(installed.split()) == wanted | {"ca-certificates"}


def test_packages_are_installed_from_the_files_that_are_copied_before(tmp_path) -> None:
    before, code = TEXT[: re.search(INSTALLS, TEXT, re.MULTILINE).start()], re.findall(INSTALLS, TEXT, re.MULTILINE)
    for names in re.findall(r"^COPY --chown=tidewise (.*)$", before, re.MULTILINE):
        *files, target = names.split()
        (tmp_path / target).mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(REPOSITORY / file, tmp_path / target)
    check = f"{code[0]}; from cli.setup import REQUIREMENTS as r, FLINK_REQUIREMENTS as f; r.read_text(); f.read_text()"
    subprocess.run([sys.executable, "-S", "-c", check], cwd=tmp_path, check=True)


def test_it_runs_as_an_ordinary_user_and_copies_nothing_that_was_made_here() -> None:
    assert re.findall(r"^USER (\S+)$", TEXT, re.MULTILINE) == ["10001"]
    assert "--uid 10001 tidewise" in TEXT
    left_out = (REPOSITORY / ".dockerignore").read_text().split()
    assert {".git", ".venv", ".cache", "out"} <= set(left_out)
