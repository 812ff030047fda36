"""The version of the code that made a row: the release, and a hash of the code that could run.

The hash is over the part that was started, all that it can import, and the policies that it was told to use. A change
elsewhere, such as in the policy of another job, leaves it as it is.
"""

from __future__ import annotations

import functools
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from include.import_closure import close_over_imports
from include.policy_catalogue import catalogue
from include.spark.code_zip import PACKAGES, content_hash, laboratory_files, packed_files
from include.stage_catalogue import stage_of

VERSION = "0.2.0"


def stage_version(stage: str, policies: Iterable[str] = ()) -> str:
    """Return ``<release>+<hash>`` of a stage's code, the same in a checkout and in the zip that Spark has.

    Policies decide in it; those whose code is elsewhere are passed over.
    """
    return _version(("spark_jobs.launch", stage_of(stage).package), PACKAGES, frozenset(policies))


def controller_version(policies: Iterable[str] = ()) -> str:
    """Return ``<release>+<hash>`` of the controller's code, with the policies that some job may have."""
    return _version(("controller",), (*PACKAGES, "controller"), frozenset(policies))


@functools.cache
def _version(roots: tuple[str, ...], packages: tuple[str, ...], policies: frozenset[str]) -> str:
    files = _read_files(packages)
    chosen = [module for name in policies for module in _modules_of_policy(name)]
    return f"{VERSION}+{content_hash((path, files[path]) for path in close_over_imports(files, (*roots, *chosen)))}"


def _modules_of_policy(name: str) -> Iterator[str]:
    """Yield the modules that the entry of a policy names."""
    entry = catalogue().get(name)
    if entry is not None:
        paths = (entry.factory, entry.parameters, entry.slot_problem, entry.past_learner, entry.memory_codec)
        yield from (path.partition(":")[0] for path in paths if path)


@functools.cache
def _read_files(packages: tuple[str, ...]) -> Mapping[str, bytes]:
    archive = getattr(globals().get("__loader__"), "archive", None)
    if archive is None:
        root = Path(__file__).resolve().parent.parent
        return {**dict(packed_files(root, packages)), **dict(laboratory_files(root))}
    return dict(_read_archive(archive))


def _read_archive(archive: str) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(archive) as packed:
        for name in packed.namelist():
            if not name.endswith(".pyc"):
                yield name, packed.read(name)
