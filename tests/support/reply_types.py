"""Arrow's type of what is read of replies, without a Spark session."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from spark_jobs.raw_parsing.reply_schema import REPLY

_KINDS = {"STRING": pa.string(), "BIGINT": pa.int64(), "INT": pa.int32()}


def reply_type() -> pa.StructType:
    kind: pa.StructType = _read(re.findall(r"[\w-]+|[<>:,]", REPLY))
    return kind


def _read(tokens: list[str]) -> Any:
    name = tokens.pop(0)
    if name in _KINDS:
        return _KINDS[name]
    tokens.pop(0)  # <
    if name == "ARRAY":
        inner = _read(tokens)
        tokens.pop(0)
        return pa.list_(pa.field("element", inner))
    fields = []
    while True:
        field = tokens.pop(0)
        if tokens[0] == ":":
            tokens.pop(0)
        fields.append((field, _read(tokens)))
        if tokens.pop(0) == ">":
            return pa.struct(fields)
