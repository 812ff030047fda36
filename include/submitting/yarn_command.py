"""The command of a submission whose driver runs on YARN."""

from __future__ import annotations

from pathlib import PurePosixPath

from include.spark.shipped_settings import OPTION
from include.submitting.submitter import ShippedSubmission


def form_command(shipped: ShippedSubmission) -> list[str]:
    """Return the argv; YARN puts the file of settings into the driver's working directory."""
    variables = {f"spark.yarn.appMasterEnv.{name}": value for name, value in shipped.environment.items()}
    command = ["spark-submit", "--master", "yarn", "--deploy-mode", "cluster", "--name", shipped.name]
    for key, value in {**shipped.conf, **variables}.items():
        command += ["--conf", f"{key}={value}"]
    if shipped.jars:
        command += ["--jars", ",".join(shipped.jars)]
    command += ["--py-files", shipped.package, "--files", shipped.settings, shipped.application]
    return [*command, *name_settings(shipped)]


def name_settings(shipped: ShippedSubmission) -> list[str]:
    """Return the arguments of a driver that has the file of settings in its working directory."""
    return [*shipped.arguments, OPTION, PurePosixPath(shipped.settings).name]
