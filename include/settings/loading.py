"""Loading: built-in defaults, then a TOML file, then environment variables."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from include.s3_client import S3ClientError, export_client
from include.settings.environment import EnvironmentFaultError, read_environment
from include.settings.missing_extras import missing_extras
from include.settings.refusals import faults_of
from include.settings.retired import drop_retired, find_constants
from include.settings.tree import Settings, SettingsError, s3_keys

SETTINGS_FILE_VARIABLE = "TIDEWISE_SETTINGS"
_INSTALLED = Path(__file__).resolve().parents[2]
PROJECT = _INSTALLED if (_INSTALLED / "pyproject.toml").is_file() else Path.cwd()
"""The checkout; of what pip has installed the working directory; meaningless inside a zip."""
_FILE = "tidewise.toml"
_TOO_DEEP = "values are nested too deeply; write sections and keys of docs/settings.md"


def settings_file() -> Path:
    """Return the settings file in force (it need not exist unless named explicitly).

    A named file that is not there is looked for in the working directory: YARN and Kubernetes put shipped files there.
    Without a name it is ``tidewise.toml`` of the working directory, else of the project.
    """
    named = os.environ.get(SETTINGS_FILE_VARIABLE)
    candidates = [Path(named), Path(Path(named).name)] if named else [Path(_FILE), PROJECT / _FILE]
    return next((path for path in candidates if path.is_file()), candidates[0])


def require_named_file() -> None:
    """Refuse a named settings file that is not there, also where one of its name is in the working directory.

    Only a driver to which the file was shipped goes by that one.

    Raises:
        SettingsError: it is not there.
    """
    named = os.environ.get(SETTINGS_FILE_VARIABLE)
    if named is not None and not Path(named).is_file():
        raise SettingsError(
            f"{SETTINGS_FILE_VARIABLE} names {named}, which does not exist; write the path of a TOML file"
        )


def load_settings() -> Settings:
    """Load and check the settings.

    Raises:
        SettingsError: a named file is missing, a key is unknown or cannot be used, or needs packages that are not
            installed; one line.
    """
    path = settings_file()
    if SETTINGS_FILE_VARIABLE in os.environ and not path.is_file():
        raise SettingsError(
            f"{SETTINGS_FILE_VARIABLE} names {path}, which does not exist; write the path of a TOML file"
        )
    written = _read_file(path) if path.is_file() else {}
    tables = {
        table: written[table] for table in ("clusters", "policies", "events") if isinstance(written.get(table), Mapping)
    }
    try:
        given = read_environment(os.environ, Settings, tables)
        settings = check_settings(_merge(written, given))
    except EnvironmentFaultError as error:
        raise SettingsError(f"settings refused: {error}", [str(error)]) from error
    except RecursionError as error:
        raise SettingsError(f"{path}: {_TOO_DEEP}") from error
    if faults := missing_extras(settings):
        raise SettingsError(f"settings refused: {'; '.join(faults)}", faults)
    if s3_keys(settings):
        storage = settings.storage
        try:
            export_client(storage.endpoint, storage.region, storage.connection_id, os.environ)
        except S3ClientError as error:
            raise SettingsError(f"settings refused: {error}", [str(error)]) from error
    return settings


def check_settings(values: Mapping[str, Any]) -> Settings:
    """Return settings from nested values.

    Raises:
        SettingsError: a key is unknown or cannot be used; one line.
    """
    faults = [str(fault) for _, fault, is_other in find_constants(values, Settings) if is_other]
    try:
        settings = Settings.model_validate(drop_retired(values))
    except ValidationError as error:
        faults += [str(fault).replace("\n", " ") for fault in faults_of(error, root=Settings)]
        raise SettingsError(f"settings refused: {'; '.join(faults)}", faults) from error
    if faults:
        raise SettingsError(f"settings refused: {'; '.join(faults)}", faults)
    return settings


def _read_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        # What a submission ships: JSON has every value that settings may have, unset ones too.
        return dict(json.loads(text)) if path.suffix == ".json" else tomllib.loads(text)
    except RecursionError as error:
        raise SettingsError(f"{path}: {_TOO_DEEP}") from error
    except (ValueError, TypeError, OSError) as error:
        raise SettingsError(
            f"{path} is no TOML file: {' '.join(str(error).split())}; write [section] and key = value"
        ) from error


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return one tree of two; where both have a key that is no section, ``above`` has it."""
    made = dict(below)
    for key, value in above.items():
        old = made.get(key)
        made[key] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return made
