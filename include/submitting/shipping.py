"""The files of a submission in the object store, under names by their content, where a driver anywhere fetches them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from include.place import ObjectPath, place
from include.settings import Settings
from include.spark.conf import JARS
from include.spark.submission import Submission
from include.submitting.refusal import SubmitError
from include.submitting.secrets import check_secrets
from include.submitting.submitter import ShippedSubmission, Submitter

FOLDER = "submitted"
"""Below ``paths.out``."""
_OF_THIS_MACHINE = "spark.pyspark.driver.python"
_VARIABLES = ("OMP_NUM_THREADS",)
"""The others of a submission are paths of this machine."""


def ship_submission(
    submission: Submission, submitter: Submitter, settings: Settings, name: str, asked: Sequence[str]
) -> ShippedSubmission:
    """Bring the files of a submission to the store, each unless it is there; returns where they are.

    Args:
        submission: for a master that is not this machine.
        submitter: of the service.
        settings: in force; ``paths.out`` is in the object store.
        name: of the application.
        asked: arguments of the stages.

    Raises:
        SubmitError: a value would show a secret.
        OSError: a file is missing, or the store does not take it now.
    """
    conf = {key: value for key, value in submission.conf.items() if key not in {JARS, _OF_THIS_MACHINE}}
    check_secrets(conf, "spark.options")
    brought = {jar.file_name for jar in submitter.brought}
    jars = [jar for jar in submission.conf.get(JARS, "").split(",") if jar and jar.rpartition("/")[2] not in brought]

    def ship(file: str) -> str:
        uri = str(ship_file(Path(file), settings.paths.out))
        return f"{submitter.scheme}:{uri.partition(':')[2]}"

    return ShippedSubmission(
        name=name,
        application=ship(str(Path(submission.application).with_name(submitter.application))),
        package=ship(submission.package),
        settings=ship(submission.settings),
        jars=tuple(jar if _is_uri(jar) else ship(jar) for jar in jars),
        conf=conf,
        environment={one: submission.environment[one] for one in _VARIABLES if one in submission.environment},
        arguments=tuple(asked),
    )


def ship_file(file: Path, root: str) -> ObjectPath:
    """Write a file to ``<root>/submitted/<hash>/<name>`` unless it is there; returns the object.

    Raises:
        SubmitError: the root is no bucket.
        OSError: the file cannot be read, or the store does not take it now.
    """
    try:
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()[:16]
        target = place(root) / FOLDER / digest / file.name
        if not isinstance(target, ObjectPath):
            raise SubmitError(f"paths.out = {root} is a folder of this machine, from which no other one fetches {file}")
        # An object is there as a whole or not at all, and its name says its content.
        if not target.is_file():
            target.write_file(file)
    except OSError as error:
        raise OSError(f"{file} cannot be brought to {root}: {error}") from error
    return target


def _is_uri(jar: str) -> bool:
    return ":" in jar.partition("/")[0]
