"""The folder of backups: every content once, by its hash, and a manifest for each backup, written last.

A backup that is killed leaves contents without a manifest, which the next one uses; earlier backups stay as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from include.atomic_write import write_bytes
from include.backup.manifest import BackedFile, BackupError, Manifest, read_manifest
from include.flink.credentials import SecretError, SecretFiles
from include.place import is_object, join_name, place
from include.settings import Settings

_MANIFESTS, _CONTENTS = "manifests", "contents"


class DamagedBackupError(BackupError):
    """A content is not what the manifest says, or is gone."""


def open_folder(root: str, settings: Settings) -> BackupFolder:
    """Open a folder of backups with the key of the settings.

    Raises:
        BackupError: the key cannot be read.
    """
    key = settings.backup.key
    try:
        return BackupFolder(root, None if key is None else SecretFiles().read(key).encode())
    except SecretError as error:
        raise BackupError(str(error)) from error


class BackupFolder:
    """Backups below a folder or prefix of a bucket, their manifests signed by a key where there is one."""

    def __init__(self, root: str, key: bytes | None = None) -> None:
        self._root, self._key = place(root), key
        self._known: set[str] | None = None

    def store(self, content: bytes, rows: int | None = None) -> BackedFile:
        """Write a content unless it is there."""
        sha256 = hashlib.sha256(content).hexdigest()
        if not self.holds(sha256):
            write_bytes(self._path(sha256), content)
            self._list().add(sha256)
        return BackedFile(sha256, len(content), rows)

    def holds(self, sha256: str) -> bool:
        """Whether a content is there; the folder is listed once."""
        return sha256 in self._list()

    def load(self, file: BackedFile) -> bytes:
        """Return a content.

        Raises:
            DamagedBackupError: it is gone, or is another one.
        """
        try:
            content = self._path(file.sha256).read_bytes()
        except FileNotFoundError as error:
            raise DamagedBackupError(f"{self._path(file.sha256)} is gone: take another backup") from error
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise DamagedBackupError(f"{self._path(file.sha256)} is damaged: take another backup")
        return content

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the manifest, by which the backup is there."""
        write_bytes(self._root / _MANIFESTS / f"{manifest.made_at.replace(':', '')}.json", manifest.to_json(self._key))

    def read_all(self) -> list[Manifest]:
        """Return every manifest, the oldest first, whoever signed it."""
        return list(self._read_paths().values())

    def _read_paths(self) -> dict[Path, Manifest]:
        folder = self._root / _MANIFESTS
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
        return {one: read_manifest(one.read_bytes()) for one in paths if one.suffix == ".json" and one.name[0] != "."}

    def read_newest(self, until: datetime | None = None) -> Manifest:
        """Return the newest backup, or the newest one up to a time.

        Raises:
            BackupError: there is none, or it is not signed by the key.
        """
        known = {path: one for path, one in self._read_paths().items() if until is None or one.at <= until}
        if not known:
            raise BackupError(f"{self._root} holds no backup{'' if until is None else ' of that time or before'}")
        return read_manifest(max(known, key=lambda path: known[path].at).read_bytes(), self._key)

    def remove_older(self, most: int) -> int:
        """Remove all but the newest backups, and contents that none of those names; returns how many contents went."""
        manifests = sorted(self.read_all(), key=lambda one: one.at)
        retained, old = manifests[-most:], manifests[:-most]
        for one in old:
            (self._root / _MANIFESTS / f"{one.made_at.replace(':', '')}.json").unlink(missing_ok=True)
        named = {file.sha256 for one in retained for file in one.list_files()}
        return self._remove(self._list() - named) if old else 0

    def _remove(self, contents: Iterable[str]) -> int:
        listed = list(contents)
        for sha256 in listed:
            self._path(sha256).unlink(missing_ok=True)
            self._list().discard(sha256)
        return len(listed)

    def _list(self) -> set[str]:
        if self._known is None:
            folder = self._root / _CONTENTS
            paths: Iterable[Path] = folder.rglob("*") if is_object(folder) or folder.is_dir() else []
            self._known = {path.name for path in paths if len(path.name) == len(hashlib.sha256().hexdigest())}
        return self._known

    def _path(self, sha256: str) -> Path:
        return join_name(self._root / _CONTENTS, f"{sha256[:2]}/{sha256}")
