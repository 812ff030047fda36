"""How one stage becomes one ``spark-submit``: shared by the Airflow operator, the command line and the tests."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from include.own_python import find_python
from include.readers import close_out
from include.s3_client import read_client
from include.settings import ENV_PREFIX, PROJECT, SETTINGS_FILE_VARIABLE, Settings, Storage, s3_keys, settings_file
from include.spark.code_zip import build_package
from include.spark.conf import spark_conf
from include.spark.jars import spark_jars
from include.spark.shipped_settings import OPTION, ship_settings

CODE = Path(__file__).resolve().parents[2]
"""Where the packages lie: the checkout, or the environment that they are installed in."""
_SQLITE = "sqlite:///"
_LOCATIONS = (
    ("paths", "lake"),
    ("paths", "raw"),
    ("paths", "out"),
    ("spark", "jars_dir"),
    ("spark", "package_zip"),
    ("mlflow", "tracking_uri"),
    ("mlflow", "artifact_root"),
)


@dataclass(frozen=True, slots=True)
class Submission:
    """Everything of a ``spark-submit`` but its arguments.

    Attributes:
        application: the script.
        package: the zip of the project's code.
        master: for which the configuration is.
        conf: Spark's configuration.
        environment: variables that the driver needs besides the submitter's own.
        settings: file with the settings in force, which a driver that runs elsewhere gets.
    """

    application: str
    package: str
    master: str
    conf: dict[str, str]
    environment: dict[str, str]
    settings: str

    def arguments(self, asked: Sequence[str]) -> list[str]:
        """Return the arguments of stages, and the settings by which the driver has to go."""
        return [*asked, OPTION, self.settings]

    def command(self, arguments: Sequence[str], spark_submit: str | None = None) -> list[str]:
        """Return the argv of a submission without Airflow."""
        command = [spark_submit or str(Path(find_python()).with_name("spark-submit")), "--master", self.master]
        for key, value in self.conf.items():
            command += ["--conf", f"{key}={value}"]
        return [*command, "--py-files", self.package, self.application, *arguments]


def prepare_submission(settings: Settings, master: str | None = None, root: Path = PROJECT) -> Submission:
    """Build the code package if needed and collect what the submission needs, to ``spark.master`` without another one.

    Raises:
        JarsMissingError: Delta's jars were not fetched.
        PackagingError: a package of the code is missing.
        SettingsError: there is no group ``paths.group`` here.
    """
    absolute = anchor_paths(settings, root)
    close_out(absolute)
    master = master or settings.spark.master
    return Submission(
        application=str(CODE / "spark_jobs" / "launch.py"),
        package=str(build_package(CODE, Path(absolute.spark.package_zip))),
        master=master,
        conf=spark_conf(absolute, spark_jars(Path(absolute.spark.jars_dir), with_s3=bool(s3_keys(settings))), master),
        environment=stage_environment(settings, os.environ, root),
        settings=str(ship_settings(name_store(absolute), Path(absolute.spark.package_zip).parent)),
    )


def name_store(settings: Settings) -> Settings:
    """Return the settings with where S3 is, for a driver without the variables that say so here.

    >>> name_store(Settings()) == Settings()
    True
    """
    if not s3_keys(settings):
        return settings
    client = read_client(os.environ)
    try:
        storage = Storage(**settings.storage.model_dump() | {"endpoint": client.endpoint, "region": client.region})
    except ValueError:  # a variable may say what the settings refuse, a region in capitals: the driver needs it as well
        return settings
    return settings.model_copy(update={"storage": storage})


def stage_environment(settings: Settings, environment: Mapping[str, str], root: Path = PROJECT) -> dict[str, str]:
    """Return the variables under which a stage sees the same settings, whatever its working directory is.

    Nothing but paths is passed: settings may hold credentials, and Airflow shows an operator's environment.
    """
    result = {"PYSPARK_PYTHON": environment.get("PYSPARK_PYTHON", find_python()), "OMP_NUM_THREADS": "1"}
    file = root / settings_file()
    if file.is_file():
        result[SETTINGS_FILE_VARIABLE] = str(file)
    absolute = anchor_paths(settings, root)
    for section, key in _LOCATIONS:
        value = getattr(getattr(absolute, section), key)
        if value != getattr(getattr(settings, section), key):
            result[f"{ENV_PREFIX}{section}__{key}".upper()] = value
    return result


def anchor_paths(settings: Settings, root: Path = PROJECT) -> Settings:
    """Return the settings with every relative local path taken from ``root`` instead of the working directory."""
    changes: dict[str, dict[str, str]] = {}
    for section, key in _LOCATIONS:
        changes.setdefault(section, {})[key] = anchor(getattr(getattr(settings, section), key), root)
    sections = {name: getattr(settings, name).model_copy(update=values) for name, values in changes.items()}
    return settings.model_copy(update=sections)


def anchor(location: str, root: Path) -> str:
    """Return a location with a relative local path (or SQLite file) made absolute; any other URI stays as it is."""
    if location.startswith(_SQLITE):
        return _SQLITE + str(root / location.removeprefix(_SQLITE))
    return location if ":" in location.split("/", maxsplit=1)[0] else str(root / location)
