"""Files that are whole or not there, whatever happens while they are written."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from include.atomic_write import replace_atomically, temporary_beside, write_bytes, write_json, write_text
from include.settings import PROJECT


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_each_form_is_read_back(tmp_path):
    write_bytes(tmp_path / "new" / "a.bin", b"\0\1")
    write_text(tmp_path / "new" / "a.txt", "Größe\n")
    write_json(tmp_path / "new" / "a.json", {"Größe": [1, None]})
    assert (tmp_path / "new" / "a.bin").read_bytes() == b"\0\1"
    assert (tmp_path / "new" / "a.txt").read_bytes() == "Größe\n".encode()
    assert (tmp_path / "new" / "a.json").read_text(encoding="utf-8") == '{\n "Größe": [\n  1,\n  null\n ]\n}\n'
    assert names(tmp_path / "new") == ["a.bin", "a.json", "a.txt"]


def test_an_error_in_the_middle_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "a.txt"
    write_text(target, "old")

    def write_half() -> None:
        with replace_atomically(target) as temporary:
            temporary.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_content_that_has_no_json_form_leaves_the_old_file(tmp_path):
    target = tmp_path / "a.json"
    write_json(target, 1)
    with pytest.raises(TypeError):
        write_json(target, object())
    assert target.read_text() == "1\n"
    assert names(tmp_path) == ["a.json"]


def test_a_killed_writer_leaves_the_old_file(tmp_path):
    target = tmp_path / "a.txt"
    write_text(target, "old")
    code = (
        "import os, signal, sys; from pathlib import Path; from include.atomic_write import replace_atomically\n"
        "with replace_atomically(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(target)], cwd=PROJECT, check=False)
    assert done.returncode == -9
    assert target.read_text() == "old"


def test_a_temporary_file_is_removed_unless_it_was_renamed(tmp_path):
    with temporary_beside(tmp_path / "a.txt") as temporary:
        temporary.write_text("x")
        assert temporary.parent == tmp_path
        assert temporary.name.startswith(".a.txt.")
    assert names(tmp_path) == []


def test_threads_do_not_share_a_temporary_file(tmp_path):
    target = tmp_path / "a.json"
    contents = [[number] * 20_000 for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: write_json(target, content), contents))
    assert json.loads(target.read_text()) in contents
    assert names(tmp_path) == ["a.json"]


def test_needs_nothing_but_the_standard_library():
    code = (
        "import sys; import include.atomic_write; import include.spark.jars; import cli.setup\n"
        "files = [str(getattr(module, '__file__', '')) for module in sys.modules.values()]\n"
        "assert not [file for file in files if 'site-packages' in file], files"
    )
    subprocess.run([sys.executable, "-S", "-c", code], cwd=PROJECT, check=True)
