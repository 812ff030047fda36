"""What `make fresh` takes from the README and from this machine, and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.fresh import __main__ as fresh
from benchmarks.fresh import debian
from benchmarks.fresh.debian import Debian, FreshError, find_mirror, readme_commands, readme_packages

README = (Path(__file__).resolve().parents[3] / "README.md").read_text()


def test_the_readmes_packages_and_its_two_commands() -> None:
    assert readme_packages(README) == [
        "make",
        "python3",
        "python3-venv",
        "default-jdk-headless",
        "libgomp1",
        "chromium",
    ]
    assert readme_commands(README) == ["make run", "make test"]


@pytest.mark.parametrize(
    "sources",
    [
        "Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie\n",
        "# comment\ndeb [arch=amd64] http://mirror.example/debian trixie main\n",
        "deb http://mirror.example/debian-security x main\ndeb http://mirror.example/debian/ trixie main\n",
    ],
)
def test_the_mirror_is_this_machines(tmp_path, monkeypatch, sources) -> None:
    (tmp_path / "sources.list").write_text(sources)
    monkeypatch.setattr(debian, "SOURCES", (tmp_path / "none", tmp_path / "sources.list"))
    assert find_mirror() == "http://mirror.example/debian"


def test_a_machine_without_debians_packages_is_asked_for_a_mirror(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(debian, "SOURCES", (tmp_path / "none",))
    with pytest.raises(FreshError, match="pass --mirror"):
        find_mirror()


def test_a_folder_with_something_else_is_left_alone(tmp_path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(FreshError, match="is no system of `make fresh`"):
        Debian(tmp_path, "trixie").remove()
    assert (tmp_path / "mine.txt").is_file()
    (tmp_path / debian.MADE).touch()
    Debian(tmp_path, "trixie").remove()
    assert not tmp_path.exists()


def test_without_root_it_says_so_and_makes_nothing(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert fresh.main(["--folder", str(tmp_path / "system")]) == 1
    assert "run `make fresh` as root" in capsys.readouterr().err
    assert not (tmp_path / "system").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
@pytest.mark.skipif(not debian.is_root_mounted(), reason="a chroot: its mounts cannot be kept apart")
def test_mounts_and_processes_end_with_the_command(tmp_path) -> None:
    system = Debian(tmp_path, "none")
    for name in ("bin", "lib", "lib64", "usr", "proc", "dev"):
        (tmp_path / name).mkdir()
    binds = [f'mount --rbind /{name} "$0/{name}"' for name in ("bin", "lib", "lib64", "usr")]
    enter = " && ".join([*binds, debian.ENTER])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(debian, "ENTER", enter)
        system.run("sleep 600 & test -e /dev/null && test -d /proc/self && test ! -e /etc", quiet=True)
        with pytest.raises(FreshError, match="exit code 3"):
            system.run("echo why; exit 3", quiet=True)
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    held = subprocess.run(["ls", tmp_path / "proc", tmp_path / "dev"], capture_output=True, text=True, check=True)
    assert "self" not in held.stdout
