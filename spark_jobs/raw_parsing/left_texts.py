"""Texts that Arrow refuses, read one by one: the envelopes of lines, and what bodies hold.

Slower than Arrow and more lenient with types: a field of another type than expected is left out of a body, and named
in an envelope.  A text that is not one JSON document is a fault.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from include.domain.quarantine_rules import Rule

_DECODER = json.JSONDecoder()
_BLANKS = " \t\r\n"
TWO_IN_ONE = "two records on one line"


class TextError(ValueError):
    """A text that cannot be used.

    Attributes:
        rule: that it breaks.
        detail: what is wrong.
    """

    def __init__(self, rule: Rule, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule, self.detail = rule, detail


@dataclass(frozen=True, slots=True)
class UnparsedLine:
    r"""A line of which Arrow could not read the envelope.

    Attributes:
        text: the line; where it is no UTF-8, with the bytes that are none written as ``\xff``.
        raw_bytes: the line as it came where it is no UTF-8, else None.
        envelope: its fields, None with a fault.
        fault: reason and detail, None without.
    """

    text: str
    raw_bytes: bytes | None
    envelope: dict[str, Any] | None
    fault: dict[str, str] | None


def read_line(line: bytes, kind: pa.StructType) -> UnparsedLine:
    """Read the envelope of a line, with the fields of ``kind``."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        shown = line.decode(errors="backslashreplace")
        return UnparsedLine(shown, line, None, _fault(Rule.BAD_ENCODING, f"byte {error.start + 1} of the line"))
    try:
        return UnparsedLine(text, None, _read_envelope(text, kind), None)
    except TextError as error:
        return UnparsedLine(text, None, None, _fault(error.rule, error.detail))


def _read_envelope(text: str, kind: pa.StructType) -> dict[str, Any]:
    result = decode(text, "line")
    if not isinstance(result, dict):
        raise TextError(Rule.MALFORMED_JSON, "line")
    read = {field.name: convert(result.get(field.name), field.type) for field in kind}
    wrong = [name for name, value in read.items() if value is None and result.get(name) is not None]
    if wrong:
        raise TextError(Rule.WRONG_TYPE, f"a field of the envelope: {', '.join(wrong)}")
    return read


def read_body(body: str, kind: pa.DataType) -> tuple[Any, dict[str, str] | None]:
    """Return what a body holds, and its fault; of the fields of ``kind`` those that have the expected type."""
    try:
        result = decode(body, "body")
    except TextError as error:
        return None, _fault(error.rule, error.detail)
    read = convert(result, kind)
    if read is None:
        return None, _fault(Rule.WRONG_TYPE, "body: no list" if pa.types.is_list(kind) else "body: no object")
    return read, None


def find_body_fault(body: str) -> dict[str, str] | None:
    """Return why a body is not one JSON document, None when it is one."""
    try:
        decode(body, "body")
    except TextError as error:
        return _fault(error.rule, error.detail)
    return None


def decode(text: str, what: str) -> Any:
    """Return the one document that a text holds.

    Raises:
        TextError: it is none, or there is more.
    """
    stripped = text.strip(_BLANKS)
    try:
        result, end = _DECODER.raw_decode(stripped)
    except (ValueError, RecursionError) as error:
        raise TextError(Rule.MALFORMED_JSON, what) from error
    rest = stripped[end:].lstrip(f"{_BLANKS},;")
    if rest:
        raise TextError(
            Rule.MALFORMED_JSON, TWO_IN_ONE if what == "line" and rest[0] == "{" else f"{what}: more than one"
        )
    if stripped[end:]:
        raise TextError(Rule.MALFORMED_JSON, what)
    return result


def convert(value: Any, kind: pa.DataType) -> Any:
    """Return a decoded value as Arrow's type takes it; None where it has another one."""
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return None
        return {field.name: convert(value.get(field.name), field.type) for field in kind}
    if pa.types.is_list(kind):
        return [convert(one, kind.value_type) for one in value] if isinstance(value, list) else None
    if pa.types.is_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return value if type(value) is int and -limit <= value < limit else None
    if not isinstance(value, str):
        return None
    return (
        value if value.isascii() else value.encode("utf-8", "replace").decode()
    )  # half of a surrogate pair is no text


def _fault(rule: Rule, detail: str) -> dict[str, str]:
    return {"reason": str(rule), "detail": detail}
