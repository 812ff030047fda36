"""A root of files: a folder of this machine, or a prefix of a bucket, with the same methods.

Standard library only until an object is read or written: the set-up uses it before anything is installed.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Generator, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PosixPath
from typing import Any

_SCHEMES = ("s3:", "s3a:")


class ObjectPath(PosixPath):
    """An object, or the prefix of some, under the methods of a path that the project uses.

    A prefix without objects is not there. What has no meaning in a bucket (links, modes, renaming) raises TypeError, as
    does any function that would open a file of this machine under the same name. An object takes the place of another
    whole or not at all.
    """

    def __str__(self) -> str:
        if self._is_rooted:
            return f"{self.parts[0]}//{'/'.join(self.parts[1:])}"
        return "/".join(self.parts)

    def __fspath__(self) -> str:
        if self._is_rooted:
            raise TypeError(f"{self} is no file of this machine")
        return str(self)

    @property
    def _is_rooted(self) -> bool:
        return bool(self.parts) and self.parts[0] in _SCHEMES

    @property
    def _key(self) -> str:
        return "/".join(self.parts[2:])

    def _ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Return what the store answers to one request.

        Raises:
            FileNotFoundError: the object is not there.
            OSError: the store does not answer, or refuses.
        """
        from obstore.exceptions import BaseError

        store = _open_bucket(self.parts[1], os.environ.get("AWS_ENDPOINT_URL"), os.environ.get("AWS_ACCESS_KEY_ID"))
        try:
            result = getattr(store, method)(*arguments, **options)
            return result.collect() if method == "list" else result
        except FileNotFoundError:
            raise
        except BaseError as error:
            raise OSError(f"{self}: {(str(error).splitlines() or [type(error).__name__])[0]}") from error

    def _list(self) -> dict[str, Any]:
        """Return the names directly below: an object's description, None for a prefix of further ones."""
        prefix = f"{self._key}/" if self._key else ""
        listed = self._ask("list_with_delimiter", prefix or None)
        names: dict[str, Any] = {one.rstrip("/")[len(prefix) :]: None for one in listed["common_prefixes"]}
        names |= {one["path"][len(prefix) :]: one for one in listed["objects"]}
        return {name: one for name, one in names.items() if name}

    def _describe(self) -> Any:
        """Return what the store says of the object; None where there is none."""
        with suppress(FileNotFoundError):
            return self._ask("head", self._key) if self._key else None
        return None

    def absolute(self) -> ObjectPath:
        """Return the path itself."""
        return self

    def resolve(self, strict: bool = False) -> ObjectPath:  # noqa: ARG002 - the signature is Python's
        """Return the path itself."""
        return self

    def is_absolute(self) -> bool:
        """Whether it names a bucket."""
        return self._is_rooted

    def exists(self, **options: Any) -> bool:  # noqa: ARG002
        """Whether there is an object, or any below."""
        return self.is_file() or self.is_dir()

    def is_file(self, **options: Any) -> bool:  # noqa: ARG002
        """Whether there is an object."""
        return self._describe() is not None

    def is_dir(self, **options: Any) -> bool:  # noqa: ARG002
        """Whether there is any object below."""
        return bool(self._list())

    def list_sizes(self) -> dict[str, tuple[int, float] | None]:
        """Return name -> bytes and time of writing (epoch seconds) of what lies directly below; None for a prefix."""
        listed = self._list()
        return {name: one and (one["size"], one["last_modified"].timestamp()) for name, one in listed.items()}

    def is_symlink(self) -> bool:
        """Return False: a bucket has no links."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002
        """Return size and time of writing of an object; of a prefix only that it is one."""
        about = self._describe()
        if about is None:
            if not self.is_dir():
                raise FileNotFoundError(f"there is nothing at {self}")
            return os.stat_result((stat.S_IFDIR, 0, 0, 1, 0, 0, 0, 0, 0, 0))
        written_s = about["last_modified"].timestamp()
        return os.stat_result((stat.S_IFREG, 0, 0, 1, 0, 0, about["size"], written_s, written_s, written_s))

    def iterdir(self) -> Generator[ObjectPath, None, None]:
        """Yield what lies directly below, by name."""
        yield from (self / name for name in sorted(self._list()))

    def rglob(self, pattern: str) -> Generator[ObjectPath, None, None]:
        """Yield the objects below whose name matches."""
        for one in self._ask("list", prefix=f"{self._key}/"):
            path = self / one["path"][len(self._key) + 1 :]
            if path.match(pattern):
                yield path

    def glob(self, pattern: str) -> Generator[ObjectPath, None, None]:
        """Yield what matches a pattern, part by part; ``**`` is none."""
        first, _, rest = pattern.partition("/")
        for path in self.iterdir():
            if path.match(first):
                yield from path.glob(rest) if rest else (path,)

    def open(self, mode: str = "r", *args: Any, encoding: str | None = None, **options: Any) -> Any:  # type: ignore[override]  # noqa: ARG002
        """Open an object to be read, as it is now."""
        if mode not in {"r", "rt", "rb"}:
            raise TypeError(f"{self} is written whole, by include.atomic_write")
        content = io.BytesIO(self.read_bytes())
        return content if mode == "rb" else io.TextIOWrapper(content, encoding or "utf-8", options.get("errors"))

    def read_bytes(self) -> bytes:
        """Return the content."""
        return bytes(self._ask("get", self._key).bytes())

    def read_text(self, encoding: str | None = None, errors: str | None = None, newline: str | None = None) -> str:  # noqa: ARG002
        """Return the content as text."""
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def write_bytes(self, data: Any) -> int:
        """Write the object, in the place of the one that is there."""
        self._ask("put", self._key, bytes(data))
        return len(data)

    def write_text(self, data: str, *args: Any, **options: Any) -> int:  # noqa: ARG002
        """Write the object in UTF-8."""
        return self.write_bytes(data.encode())

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: a prefix is there when something below it is."""

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the object."""
        if not missing_ok and not self.is_file():
            raise FileNotFoundError(f"there is nothing at {self}")
        self._ask("delete", self._key)


@lru_cache(maxsize=32)
def _open_bucket(bucket: str, endpoint: str | None, key_id: str | None) -> Any:  # noqa: ARG001 - a client for each
    from include.object_store import open_store

    return open_store(f"s3://{bucket}")


def place(root: str) -> Path:
    """Return a root of the settings as a path: of this machine, or of a bucket."""
    return ObjectPath(root) if root.startswith(_SCHEMES) else Path(root)


class NameRefusedError(ValueError):
    """A name that a file holds would lead out of the folder that it is of."""


def join_name(root: Path, name: str) -> Path:
    """Return the path of a name, or of several with slashes, that came from a file: always below the root.

    Raises:
        NameRefusedError: it is absolute, empty, has a part that is none (``..``, ``.``, nothing, a NUL), or is behind a
            link that leads out of the root.
    """
    parts = name.split("/")
    result = root.joinpath(*parts)
    is_odd = any(part in {"", ".", ".."} or "\0" in part for part in parts)
    if is_odd or not result.resolve().is_relative_to(root.resolve()):
        raise NameRefusedError(f"{name!r} is no name of a file below {root}")
    return result


def is_object(path: Path) -> bool:
    """Whether a path is one of a bucket."""
    return isinstance(path, ObjectPath)


def remove_all(paths: Iterable[Path]) -> None:
    """Remove everything below prefixes of a bucket; what was removed half-way is removed the rest of the way."""
    for path in paths:
        for one in path.rglob("*"):
            one.unlink(missing_ok=True)


def local_beside(root: str) -> Path:
    """Return the folder of this machine for what no bucket can hold (databases, locks, logs): the root itself if local.

    Relative, as the root is.
    """
    path = place(root)
    return Path("out", "_".join(path.parts[1:])) if is_object(path) else path
