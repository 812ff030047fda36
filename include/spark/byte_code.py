"""Byte code inside zips of Python code: Python keeps none for them, and would compile every module at every start.

Standard library only, as the set-up uses it before anything is installed.
"""

from __future__ import annotations

import py_compile
import warnings
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can store: the same code gives the same bytes


def write_entry(packed: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a file to a zip, compressed and without the time of writing."""
    entry = zipfile.ZipInfo(name, _EARLIEST)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    packed.writestr(entry, content)


def add_byte_code(packed: zipfile.ZipFile) -> None:
    """Add to a zip the byte code of each of its modules that has none, beside the module.

    Sources stay: tracebacks show their lines, and another version of Python passes the byte code over.
    """
    names = set(packed.namelist())
    with TemporaryDirectory() as folder:
        source, compiled = Path(folder, "source.py"), Path(folder, "compiled.pyc")
        for name in sorted(names):
            if not name.endswith(".py") or f"{name}c" in names:
                continue
            source.write_bytes(packed.read(name))
            # Not checked against its source when loaded: both are written once, together.
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # newer Pythons find fault with Spark's own code
                py_compile.compile(str(source), str(compiled), name, doraise=True, invalidation_mode=mode)
            write_entry(packed, f"{name}c", compiled.read_bytes())
