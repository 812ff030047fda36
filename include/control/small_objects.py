"""Small objects in a folder below the lake, which every driver and worker sees: on a disk or in an object store."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from itertools import islice
from typing import Any

from obstore.exceptions import BaseError

from include.object_store import local_folder, open_store

CONTROL = "_control"
MOST_OBJECTS = 10_000
"""Of all folders below :data:`CONTROL`; of more nobody knows in time what they say."""
MOST_BYTES = 1 << 20
_TIMEOUT_S = 10
_CLIENT = {"timeout": f"{_TIMEOUT_S}s", "connect_timeout": "5s"}
_RETRY = {"max_retries": 2, "retry_timeout": timedelta(seconds=_TIMEOUT_S)}


Listing = Sequence[Mapping[str, Any]]
_shared: ContextVar[dict[str, Listing] | None] = ContextVar("shared listings", default=None)


class StoreUnreadableError(Exception):
    """The folder cannot be read or written; the message is one line."""


@contextmanager
def list_once() -> Iterator[None]:
    """Inside the block, and in this thread, the folders of :data:`CONTROL` below a root are listed together, once.

    A listing is the dearest request of a bucket, and the controller reads five of these folders at every tick.
    """
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)


class ObjectFolder:
    """A flat folder of small objects.

    Attributes:
        root: folder or URI that has to exist: without it nobody knows what the folder below holds.
        folder: path below it; not there means empty.
        most_bytes: a larger object is empty.
    """

    def __init__(self, root: str, folder: str, most_bytes: int = MOST_BYTES) -> None:
        self.root, self.folder, self.most_bytes = root, folder, most_bytes
        self._read: dict[tuple[Any, ...], bytes] = {}

    def read_all(self) -> dict[str, bytes]:
        """Return name -> content; what has not changed since the last time is not read again.

        What is there and no object (on a disk: a folder, a link to nothing, a name that no object may have) is empty,
        and so is an object of more than ``most_bytes``.

        Raises:
            StoreUnreadableError: the store does not answer, the root is not there, or the objects are too many.
        """
        try:
            store = self._open()
            return self._read_listed(store, self._list(store))
        except (BaseError, OSError, ValueError) as error:
            raise StoreUnreadableError(self._describe(error)) from error

    def _read_listed(self, store: Any, listed: Listing) -> dict[str, bytes]:
        keys = {one["path"]: (one["path"], one["e_tag"], one["last_modified"], one["size"]) for one in listed}
        known = self._read
        read = {key: known[key] if key in known else self._get(store, path, key[-1]) for path, key in keys.items()}
        self._read = read
        result = {path.rpartition("/")[2]: read[key] for path, key in keys.items()}
        return {**dict.fromkeys(self._list_odd(result), b""), **result}

    def _get(self, store: Any, path: str, size: int) -> bytes:
        return bytes(store.get(path).bytes()) if size <= self.most_bytes else b""

    def delete_where(self, is_ended: Callable[[bytes], bool]) -> int:
        """Delete the objects whose content has ended, among the first :data:`MOST_OBJECTS`; returns how many.

        Raises:
            StoreUnreadableError: the store does not answer, or the root is not there.
        """
        try:
            store = self._open()
            listed = list(_list_up_to(store, f"{self.folder}/", MOST_OBJECTS))
            ended = [name for name, content in self._read_listed(store, listed).items() if is_ended(content)]
            store.delete([f"{self.folder}/{name}" for name in ended])
            return len(ended)
        except (BaseError, OSError, ValueError) as error:
            raise StoreUnreadableError(self._describe(error)) from error

    def write(self, name: str, content: bytes) -> None:
        """Write an object, in the place of the one that has the name.

        Raises:
            StoreUnreadableError: it was not written.
        """
        try:
            self._open().put(f"{self.folder}/{name}", content)
        except (BaseError, OSError, ValueError) as error:
            raise StoreUnreadableError(self._describe(error)) from error

    def delete(self, name: str) -> None:
        """Delete an object; one that is not there is no fault.

        Raises:
            StoreUnreadableError: it may still be there.
        """
        try:
            with suppress(FileNotFoundError):
                self._open().delete(f"{self.folder}/{name}")
            self._delete_odd(name)
        except (BaseError, OSError, ValueError) as error:
            if self._delete_odd(name):
                return
            raise StoreUnreadableError(self._describe(error)) from error

    def _list(self, store: Any) -> Listing:
        """Return what the store says of the objects of the folder."""
        shared, own = _shared.get(), f"{self.folder}/"
        if shared is None or not own.startswith(f"{CONTROL}/"):
            return _list_all(store, own)
        if self.root not in shared:
            shared[self.root] = _list_all(store, f"{CONTROL}/")
        return [one for one in shared[self.root] if one["path"].startswith(own)]

    def _list_odd(self, result: Mapping[str, bytes]) -> list[str]:
        """Return what lies in a local folder and is not among the objects that were found."""
        root = local_folder(self.root)
        if root is None or not os.path.lexists(root / self.folder):
            return []
        return [path.name for path in (root / self.folder).iterdir() if path.name not in result]

    def _delete_odd(self, name: str) -> bool:
        """Delete what is no object; returns whether there was something.

        Raises:
            StoreUnreadableError: it is still there.
        """
        root = local_folder(self.root)
        if root is None or not os.path.lexists(root / self.folder / name):
            return False
        try:
            (root / self.folder / name).unlink()
        except OSError as error:
            raise StoreUnreadableError(self._describe(error)) from error
        return True

    def _open(self) -> Any:
        folder = local_folder(self.root)
        if folder is not None and not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder}")
        return open_store(self.root, client_options=_CLIENT, retry_config=_RETRY)

    def _describe(self, error: Exception) -> str:
        return f"{self.root}/{self.folder}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"


def _list_up_to(store: Any, prefix: str, most: int) -> Iterator[Mapping[str, Any]]:
    return islice((one for batch in store.list(prefix=prefix) for one in batch), most)


def _list_all(store: Any, prefix: str) -> Listing:
    """Return all objects; raises ValueError when they are too many."""
    result = list(_list_up_to(store, prefix, MOST_OBJECTS + 1))
    if len(result) > MOST_OBJECTS:
        raise ValueError(f"{prefix} has more than {MOST_OBJECTS:,} objects, which are not read; remove what has ended")
    return result


def object_name(of: str, ending: str = "json") -> str:
    """Return an object's name for any text: readable in part, and its own."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", of)[:60].strip("-")
    return f"{readable or 'x'}-{hashlib.sha256(of.encode()).hexdigest()[:16]}.{ending}"
