"""The manifest of a backup: which version of which table, how many rows, and the hash of every file."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from include.place import join_name
from include.utc import parse_utc

FORMAT = 2
_UNSEALED = 1  # the format of releases whose manifests have no checksum of their own
_ROOT = Path("the backup")


class BackupError(RuntimeError):
    """A backup cannot be made or used; the message says what to do."""


@dataclass(frozen=True, slots=True)
class BackedFile:
    """A file of a backup.

    Attributes:
        sha256: of its content, by which it is stored.
        size_bytes: its length.
        rows: of a file of rows; None of any other.
    """

    sha256: str
    size_bytes: int
    rows: int | None = None


Files = Mapping[str, BackedFile]
"""Path below the root that they are of -> file."""


@dataclass(frozen=True, slots=True)
class BackedTable:
    """A Delta table at one version.

    Attributes:
        version: of the table.
        files: data, and as much of the log as opens that version.
    """

    version: int
    files: Files

    @property
    def rows(self) -> int:
        """Rows at that version."""
        return sum(one.rows or 0 for one in self.files.values())


@dataclass(frozen=True, slots=True)
class BackedRegistry:
    """MLflow's database and artifacts.

    Attributes:
        database: SQLite file; None where a server or another database has it, which has its own backup.
        artifacts: files below ``mlflow.artifact_root``.
        model_versions: registered versions in the database.
        missing: why there is no database; empty where there is.
    """

    database: BackedFile | None
    artifacts: Files
    model_versions: int = 0
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one backup holds.

    Attributes:
        made_at: ISO 8601, UTC: what was done later is not in it.
        code_version: release that made it.
        lake, artifact_root: from where.
        tables: name -> table.
        objects: what persons have set.
        leases: cluster -> highest number of a lease that was known.
        registry: of the models.
    """

    made_at: str
    code_version: str
    lake: str
    artifact_root: str
    tables: Mapping[str, BackedTable]
    objects: Files
    leases: Mapping[str, int]
    registry: BackedRegistry
    format: int = field(default=FORMAT)

    @property
    def at(self) -> datetime:
        """When it was made."""
        return parse_utc(self.made_at)

    def list_files(self) -> Iterator[BackedFile]:
        """Yield every file that it names."""
        for table in self.tables.values():
            yield from table.files.values()
        yield from self.objects.values()
        yield from self.registry.artifacts.values()
        if self.registry.database is not None:
            yield self.registry.database

    def to_json(self, key: bytes | None = None) -> bytes:
        """Return it as bytes to be written, with a checksum, and signed where there is a key."""
        made = asdict(self)
        return (json.dumps(made | {"seal": _seal(made, key)}, indent=1, ensure_ascii=False) + "\n").encode()


def _seal(made: Mapping[str, Any], key: bytes | None) -> dict[str, str]:
    """Return the checksum of a manifest, and its HMAC where there is a key."""
    text = json.dumps(made, sort_keys=True).encode()
    result = {"sha256": hashlib.sha256(text).hexdigest()}
    return result if key is None else result | {"hmac_sha256": hmac.new(key, text, "sha256").hexdigest()}


def read_manifest(content: bytes, key: bytes | None = None) -> Manifest:
    """Return a manifest from its bytes; without a key whoever could write it is believed.

    Raises:
        BackupError: it is none, is damaged, is not signed by the key, names a file outside of what it is of, or is of a
            later release.
    """
    try:
        made = json.loads(content)
        if made["format"] not in {FORMAT, _UNSEALED}:
            raise BackupError(f"the manifest has format {made['format']}, this release reads {FORMAT}")
        seal = made.pop("seal", {}) if made["format"] == FORMAT else _seal(made, None)
        right = _seal(made, key)
        if seal["sha256"] != right["sha256"]:
            raise BackupError(f"the manifest of {made['made_at']} is damaged: take another backup")
        if key is not None and not hmac.compare_digest(str(seal.get("hmac_sha256")), right["hmac_sha256"]):
            raise BackupError(
                f"the manifest of {made['made_at']} is not signed by backup.key: somebody else may have written it; to "
                "restore it all the same, leave the key out of the settings"
            )
        registry = made["registry"]
        database = registry["database"]
        return Manifest(
            **{
                **made,
                "tables": {
                    name: BackedTable(int(one["version"]), _files(one["files"])) for name, one in made["tables"].items()
                },
                "objects": _files(made["objects"]),
                "leases": {str(cluster): int(number) for cluster, number in made["leases"].items()},
                "registry": BackedRegistry(
                    None if database is None else BackedFile(**database),
                    _files(registry["artifacts"]),
                    int(registry["model_versions"]),
                    str(registry["missing"]),
                ),
            }
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackupError(f"the manifest cannot be read: {type(error).__name__}: {error}") from error


def _files(made: Mapping[str, Mapping[str, object]]) -> dict[str, BackedFile]:
    for name, one in made.items():
        join_name(_ROOT, name)
        join_name(_ROOT, str(one["sha256"]))
    return {name: BackedFile(**one) for name, one in made.items()}  # type: ignore[arg-type]
