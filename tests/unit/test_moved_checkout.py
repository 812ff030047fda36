"""After a checkout was moved or copied its scripts run its own environment, and no other one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml

from cli.embedded import airflow_environment
from cli.moved_checkout import FOLDER_FILE, is_in_place, move_scripts, note_place
from include.settings import PROJECT, Paths, Settings

SCRIPT = """#!{python}
import sys
print(sys.prefix)
"""


@pytest.fixture
def made(tmp_path) -> Path:
    """A real environment of a checkout, with a script such as installers write."""
    venv = tmp_path / "first" / ".venv"
    venv.parent.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    script = venv / "bin" / "tool"
    script.write_text(SCRIPT.format(python=venv / "bin" / "python"))
    script.chmod(0o755)
    (venv / "bin" / "program").write_bytes(b"\x7fELF\0" + str(venv).encode())
    return venv


def prefix(venv: Path) -> str:
    return subprocess.check_output([venv / "bin" / "tool"], text=True).strip()


@pytest.mark.parametrize("with_note", [True, False], ids=["noted", "of an earlier release"])
def test_a_copy_runs_its_own_environment(made, tmp_path, with_note):
    if with_note:
        note_place(made)
    assert is_in_place(made)
    # A folder whose name begins like the old one's is another folder.
    copy = tmp_path / "first-copy" / ".venv"
    shutil.copytree(made.parent, copy.parent, symlinks=True)
    assert prefix(copy) == str(made)
    assert not is_in_place(copy)
    move_scripts(copy)
    assert is_in_place(copy)
    assert prefix(copy) == str(copy)
    assert prefix(made) == str(made)
    assert str(made).encode() in (copy / "bin" / "program").read_bytes()  # programs are left as they are
    move_scripts(copy)
    assert prefix(copy) == str(copy)


def test_a_moved_one_runs_again(made, tmp_path):
    moved = tmp_path / "second" / ".venv"
    made.parent.rename(moved.parent)
    with pytest.raises(FileNotFoundError):
        prefix(moved)
    move_scripts(moved)
    text = (moved / "bin" / "tool").read_text()
    assert text == SCRIPT.format(python=moved / "bin" / "python")
    assert (moved / "bin" / "tool").stat().st_mode & 0o111


def test_an_environment_behind_a_link_is_left_to_its_checkout(made, tmp_path):
    link = tmp_path / "worktree" / ".venv"
    link.parent.mkdir()
    link.symlink_to(made)
    assert is_in_place(link)
    note_place(link)
    assert (made / FOLDER_FILE).read_text() == str(made)


def test_where_nothing_is_known_nothing_is_done(tmp_path):
    assert is_in_place(tmp_path / ".venv")


def test_nothing_in_airflows_own_file_leads_to_the_checkout_that_a_copy_came_from(tmp_path):
    """Airflow writes the absolute paths of its first start into airflow.cfg; what the environment says comes first."""
    template = Path(distribution("apache-airflow-core").locate_file("airflow/config_templates/config.yml"))
    variables = airflow_environment(Settings(paths=Paths(out=str(tmp_path))), {})
    absolute = {
        f"AIRFLOW__{section}__{option}".upper()
        for section, content in yaml.safe_load(template.read_text()).items()
        for option, about in content["options"].items()
        if "{AIRFLOW_HOME}" in str(about.get("default"))
    }
    assert len(absolute) >= 5
    assert absolute <= variables.keys()
    of_this_checkout = {"AIRFLOW__CORE__DAGS_FOLDER", "AIRFLOW__CORE__PLUGINS_FOLDER"}
    assert all(str(PROJECT) in variables[name] for name in of_this_checkout)
    assert all(str(tmp_path) in variables[name] for name in absolute - of_this_checkout)
