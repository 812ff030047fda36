"""The store of small objects beside the tables: a folder of this machine, or a URI of a provider."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from obstore.store import LocalStore, ObjectStore, from_url

from include.s3_client import client_options

_SCHEMES = {"s3a": "s3", "s3n": "s3", "wasbs": "az"}  # Hadoop's names of the same stores


def local_folder(root: str) -> Path | None:
    """Return a root as a folder of this machine; None when it is a URI of another place."""
    parts = urlsplit(root)
    if len(parts.scheme) > 1 and parts.scheme != "file":  # one letter is a drive
        return None
    return Path(parts.path if parts.scheme == "file" else root).absolute()


def open_store(root: str, **options: Any) -> ObjectStore:
    """Return the store of a folder or URI; credentials come from where its provider's tools look for them.

    A folder that is not there is made; options are those of the client of a URI, such as ``retry_config``.
    """
    folder = local_folder(root)
    if folder is not None:
        return LocalStore(folder, mkdir=True)
    scheme, _, rest = root.partition("://")
    scheme = _SCHEMES.get(scheme, scheme)
    if scheme == "s3":  # options of a client replace what the environment says of it
        options["client_options"] = {**client_options(os.environ), **options.get("client_options", {})}
    return from_url(f"{scheme}://{rest}", **options)
