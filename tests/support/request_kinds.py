"""Of what kind the requests to the S3 server of the tests were, and about what."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

METHODS = ("LIST", "HEAD", "GET", "PUT", "POST", "DELETE")


def describe_request(request: str) -> tuple[str, str]:
    """Return a request, as :func:`local_s3.list_requests` has it, as method and what it is about.

    A listing is a method of its own. An object whose name has no suffix is what a client of a file system asks for
    when it looks for a folder.
    """
    method, path = request.split(" ", 1)
    if path.startswith("?"):
        prefix = re.search(r"(?:^|[?&])prefix=([^&]*)", path)
        if prefix is None:
            return method, "several objects"
        return "LIST", "log" if "_delta_log" in prefix[1] else _name_root(prefix[1])
    name = path.rsplit("/", 1)[-1]
    if "." not in name and name != "_last_checkpoint":
        return method, "a folder"
    if "_delta_log" in path:
        return method, "log"
    return method, "rows" if name.endswith(".parquet") else _name_root(path.split("/", 2)[-1])


def _name_root(key: str) -> str:
    """Return what lies where a key is, below the folder of a run."""
    below = key.split("/", 2)[1] if "/" in key else ""
    return {"lake": "below tables", "raw": "raw files", "": "other"}.get(below, below)


def table_of_requests(parts: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return a row for each part: its requests, and how many of each method and of what most of them are about."""
    rows = []
    for part, requests in parts.items():
        described = [describe_request(one) for one in requests]
        methods = Counter(method for method, _ in described)
        about = Counter(described).most_common(5)
        most = ", ".join(f"{count} {method} {what}" for (method, what), count in about)
        rows.append([part, str(len(described)), *(str(methods[name]) for name in METHODS), most])
    return rows
