"""Makes .venv work again after the checkout was moved or copied: its scripts name their Python by an absolute path.

Standard library only: the set-up uses it before anything is installed. A copy would otherwise run the programs of the
checkout that it was copied from, without a word.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from cli.setup_steps import works
from include.atomic_write import replace_atomically, write_text

FOLDER_FILE = ".tidewise-folder"


def is_in_place(venv: Path) -> bool:
    """Return whether an environment's scripts are for the folder in which it lies, links followed, or none is known."""
    return _written_for(venv) in (None, str(venv.resolve()))


def note_place(venv: Path) -> None:
    """Note that the scripts are those of the folder in which the environment lies."""
    write_text(venv / FOLDER_FILE, str(venv.resolve()))


def move_scripts(venv: Path) -> None:
    """Replace the old folder in every script by the new one, and compile anew what the copy made look changed."""
    old, new = _written_for(venv), str(venv.resolve())
    if old is not None and old != new:
        for script in _scripts_naming(venv, old):
            _replace(script, old, new)
    # Byte code counts as old when a copy gave the source another time. This is quick where nothing is to be done.
    works([venv / "bin" / "python", "-m", "compileall", "-q", "-j", "0", venv / "lib"])
    note_place(venv)


def _written_for(venv: Path) -> str | None:
    """Return the folder that the scripts name; None when nothing tells it."""
    note, config = venv / FOLDER_FILE, venv / "pyvenv.cfg"
    if note.is_file():
        return note.read_text()
    if not config.is_file():
        return None
    command = re.search(r"^command = .* -m venv (?:--\S+ )*(.+)$", config.read_text(), re.MULTILINE)
    return command[1].strip() if command else None


def _scripts_naming(venv: Path, folder: str) -> Iterator[Path]:
    for path in [venv / "pyvenv.cfg", *sorted((venv / "bin").iterdir())]:
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        if b"\0" not in content and folder.encode() in content:  # no program such as uv
            yield path


def _replace(script: Path, old: str, new: str) -> None:
    """Rewrite a script with the rights it had; a folder whose name only begins like the old one is left alone."""
    content = re.sub(re.escape(old.encode()) + rb"(?![\w.-])", lambda _: new.encode(), script.read_bytes())
    with replace_atomically(script) as partial:
        partial.write_bytes(content)
        shutil.copymode(script, partial)
