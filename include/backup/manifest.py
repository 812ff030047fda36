"""The manifest of a backup: which version of which table, how many rows, and the hash of every file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime

from include.utc import parse_utc

FORMAT = 1


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

    def to_json(self) -> bytes:
        """Return it as bytes to be written."""
        return (json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n").encode()


def read_manifest(content: bytes) -> Manifest:
    """Return a manifest from its bytes.

    Raises:
        BackupError: it is none, or of a later release.
    """
    try:
        made = json.loads(content)
        if made["format"] != FORMAT:
            raise BackupError(f"the manifest has format {made['format']}, this release reads {FORMAT}")
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
    return {str(path): BackedFile(**one) for path, one in made.items()}  # type: ignore[arg-type]
