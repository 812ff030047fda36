"""How much of the disks is free that hold the lake, the raw files and what Tidewise itself writes."""

from __future__ import annotations

import shutil

from include.object_store import local_folder
from include.settings import Paths


def read_free_shares(paths: Paths) -> dict[str, float]:
    """Return folder -> free share of its disk, one folder for each disk; what is no folder here is left out."""
    folders = [local_folder(one) for one in (paths.lake, paths.raw, paths.out)]
    result: dict[int, tuple[str, float]] = {}
    for folder in folders:
        if folder is None:
            continue
        try:
            device, usage = folder.stat().st_dev, shutil.disk_usage(folder)
        except OSError:  # not there: other figures say so
            continue
        if usage.total:
            result.setdefault(device, (str(folder), usage.free / usage.total))
    return dict(result.values())
