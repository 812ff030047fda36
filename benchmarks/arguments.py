"""Arguments that several comparisons take."""

from __future__ import annotations

import argparse
from pathlib import Path


def readable_file(text: str) -> Path:
    """Read an argument that is a file which is there."""
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"expected a file that is there, not {text!r}")
    return Path(text)
