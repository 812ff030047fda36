"""The cells of an exported table: encodings, separators, thousands and units; what is no number is no gap."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.replay.trace_json import read_series

UNREADABLE_MAX = 0.01
_NOTHING = frozenset({"", "-", "nan", "null", "none", "n/a", "na", "undefined"})
_UNITS = {"K": 1e3, "k": 1e3, "M": 1e6, "Mil": 1e6, "G": 1e9, "B": 1e9, "Bil": 1e9}
"""Of counts, as Grafana's formats "short" and "SI short" write them."""
_NUMBER = re.compile(rf"([-+]?(?:\d+|[1-9]\d{{0,2}}(?:,\d{{3}})+)(?:\.\d+)?)\s*({'|'.join(_UNITS)})?")
_COMMA_DECIMAL = re.compile(r"[-+]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+),\d+")
_BYTE_ORDERS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
_SEPARATORS = (";", "\t")


class TraceError(ValueError):
    """A file that holds no trace; the message says what is wrong with it."""


def read_cells(path: Path) -> pd.DataFrame:
    """Return the cells of a file, gzipped or not, as text, whether commas, semicolons or tabs stand between them.

    UTF-8 is read, and UTF-16 with a byte order mark; of a table with semicolons a decimal comma. Of JSON the one series
    that Prometheus or CloudWatch answered with is a table, too.

    Raises:
        TraceError: it is no such table.
    """
    text = _read_text(path)
    if text.lstrip()[:1] in {"{", "["}:
        try:
            name, series = read_series(text)
        except ValueError as error:
            raise TraceError(
                f"{path}: {str(error)[:300]}; or write it as CSV with the columns time_s and rate"
            ) from error
        return pd.DataFrame([(name, "rate"), *((str(at), str(value)) for at, value in series)])
    begin = [line for line in text[:65_536].splitlines()[:20] if line.strip() and not line.startswith("#")]
    separator = next((one for one in _SEPARATORS if begin and all(one in line for line in begin)), ",")
    try:
        table = pd.read_csv(
            io.StringIO(text), header=None, dtype=str, skipinitialspace=True, comment="#", sep=separator
        )
    except ValueError as error:
        raise TraceError(f"{path}: {str(error).strip()}; its cells are taken to stand between {separator!r}") from error
    return table.map(_with_point) if separator == ";" else table


def _read_text(path: Path) -> str:
    try:
        content = path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        encoding = next((name for mark, name in _BYTE_ORDERS.items() if content.startswith(mark)), "utf-8")
        return content.decode(encoding)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise TraceError(f"{path}: {error}; UTF-8 is read, and UTF-16 with a byte order mark") from error


def _with_point(cell: object) -> object:
    if isinstance(cell, str) and _COMMA_DECIMAL.fullmatch(cell.strip()):
        return cell.strip().replace(".", "").replace(",", ".")
    return cell


def parse_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the numbers of a column; NaN of a cell that holds none. Thousands and units of counts are read."""
    result = pd.to_numeric(column, errors="coerce")
    for at in np.flatnonzero(result.isna() & column.notna()).tolist():
        match = _NUMBER.fullmatch(str(column.iloc[at]).strip())
        if match is not None:
            result.iloc[at] = float(match[1].replace(",", "")) * _UNITS.get(match[2], 1.0)
    return result


def find_unreadable(column: pd.Series[Any], read: pd.Series[Any]) -> list[str]:
    """Return the cells that hold something of which nothing was read."""
    texts = column[read.isna() & column.notna()].astype(str).str.strip()
    return [text for text in texts if text.lower() not in _NOTHING]
