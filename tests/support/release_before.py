"""What the release before this one left behind, unpacked below a folder: lake, models, settings, raw files."""

from __future__ import annotations

import sqlite3
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.embedded import below
from include.settings import PROJECT, SETTINGS_FILE_VARIABLE, Settings, load_settings

ARCHIVE = PROJECT / "data" / "release_before" / "release_before.tar.xz"
AS_OF = datetime(2026, 11, 20, 19, tzinfo=UTC)
"""Of its last training, forecast, plan and tick; the raw files reach an hour further."""
JOBS = ("fraud-scoring", "inventory-sync")
_MADE_BELOW = "/release_before"


def unpack(root: Path) -> Settings:
    """Unpack it and return its own settings, with everything below ``root``."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(root, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # 3.11.4 and later
    move_model_store(root / "mlflow.db", root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SETTINGS_FILE_VARIABLE, str(root / "tidewise.toml"))
        for name, value in below(root).items():
            patch.setenv(name, value)
        patch.setenv("TIDEWISE__SPARK__JARS_DIR", str(PROJECT / ".cache" / "jars"))
        return load_settings()


def move_model_store(database: Path, root: Path) -> None:
    """Have MLflow's database, which holds whole paths, name those below ``root``."""
    connection = sqlite3.connect(database)
    with connection:
        named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in named:
            for _, column, *_ in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
                connection.execute(
                    f'UPDATE "{table}" SET "{column}" = replace("{column}", ?, ?) WHERE instr("{column}", ?)',
                    (_MADE_BELOW, str(root), _MADE_BELOW),
                )
    connection.close()
