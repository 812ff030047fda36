"""The rules that replies about a job have to meet, for many at once; names may be missing or alike, ids may not.

Operators get names of their own later; a vertex without an id cannot be told from another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from include.domain.quarantine_rules import Rule
from include.domain.reply_limits import EARLIEST_MS, HEX_ID
from include.flink.job_states import CHECKPOINT_COMPLETED, DATED_STATES
from include.flink.raw_format import Endpoint

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

EVENT_RULES = (
    Rule.MISSING_FIELD,
    Rule.WRONG_TYPE,
    Rule.BAD_ID,
    Rule.JOB_MISMATCH,
    Rule.BAD_GRAPH,
    Rule.TIME_OUT_OF_RANGE,
)
"""In the order in which they are looked at."""


def find_event_faults(
    kind: pa.StringArray, job_id: pa.StringArray, observed_at_ms: pa.Int64Array, event: pa.StructArray, skew_ms: int
) -> dict[int, dict[str, str]]:
    """Return row -> reason and detail of the first rule that a reply breaks.

    All are of the lines; ``event``, what their bodies hold, is null where it is of no interest. A reply may say that
    something happened later than it was observed by ``skew_ms``.
    """
    given = _flags(pc.is_valid(event))
    rules = _Rules(kind, job_id, observed_at_ms, event, skew_ms)
    result: dict[int, dict[str, str]] = {}
    for row, rule, detail in rules.broken():
        if given[row] and row not in result:
            result[row] = {"reason": str(rule), "detail": f"body: {detail}"}
    return result


class _Rules:
    """See :func:`find_event_faults`."""

    def __init__(
        self,
        kind: pa.StringArray,
        job_id: pa.StringArray,
        observed_at_ms: pa.Int64Array,
        event: pa.StructArray,
        skew_ms: int,
    ) -> None:
        self._event, self._job_id = event, job_id
        self._latest_ms = pc.fill_null(observed_at_ms, 0).to_numpy(zero_copy_only=False) + skew_ms
        self._is = {one: _flags(pc.equal(kind, str(one))) for one in Endpoint}
        plan = pc.struct_field(event, "plan")
        self._vertices = {
            Endpoint.JOB: _where(pc.struct_field(event, "vertices"), self._is[Endpoint.JOB]),
            Endpoint.PLAN: _where(pc.struct_field(plan, "nodes"), self._is[Endpoint.PLAN]),
        }

    def broken(self) -> Iterator[tuple[int, Rule, str]]:
        """Yield row, rule and detail, rule by rule."""
        checks = (
            self._lacking(),
            self._without_own_ids(),
            self._bad_ids(),
            self._of_other_jobs(),
            self._unknown_inputs(),
            self._impossible_times(),
        )
        for rule, faults in zip(EVENT_RULES, checks, strict=True):
            yield from ((row, rule, detail) for row, detail in faults)

    def _lacking(self) -> Iterator[tuple[int, str]]:
        for name in ("name", "state"):
            text = pc.struct_field(self._event, name)
            lacks = self._is[Endpoint.JOB] & ~_flags(pc.greater(pc.binary_length(text), 0))
            yield from ((row, name) for row in _rows(lacks))
        for kind, field in ((Endpoint.JOB, "vertices"), (Endpoint.PLAN, "plan.nodes")):
            lacks = self._is[kind] & _flags(pc.is_null(self._vertices[kind]))
            yield from ((row, field) for row in _rows(lacks))

    def _ids(self) -> Iterator[tuple[Ints, pa.StringArray]]:
        """Yield the rows of vertices, and their ids."""
        for vertices in self._vertices.values():
            yield _parents(vertices), pc.struct_field(pc.list_flatten(vertices), "id")

    def _without_own_ids(self) -> Iterator[tuple[int, str]]:
        for rows, ids in self._ids():
            codes, known = _encode(ids)
            keys, counts = np.unique(rows * known + codes, return_counts=True)
            alike, without = keys[counts > 1] // known, rows[_flags(pc.is_null(ids))]
            yield from ((row, "vertices without an id of their own") for row in [*alike.tolist(), *without.tolist()])

    def _bad_ids(self) -> Iterator[tuple[int, str]]:
        for rows, ids in self._ids():
            bad = np.flatnonzero(_flags(pc.invert(pc.match_substring_regex(ids, HEX_ID))))
            yield from ((int(rows[place]), f"vertex {ids[place].as_py()}") for place in bad.tolist())

    def _of_other_jobs(self) -> Iterator[tuple[int, str]]:
        reported = pc.struct_field(pc.struct_field(self._event, "plan"), "jid")
        reported = pc.coalesce(_where(pc.struct_field(self._event, "jid"), self._is[Endpoint.JOB]), reported)
        # Of a job that initialises Flink gives an empty plan of no job: an ordinary reply.
        is_empty = self._is[Endpoint.PLAN] & _flags(pc.equal(pc.list_value_length(self._vertices[Endpoint.PLAN]), 0))
        is_of_none = is_empty & _flags(pc.equal(reported, ""))
        for row in _rows(_flags(pc.not_equal(reported, self._job_id)) & ~is_of_none):
            yield row, f"it is of job {reported[row].as_py()}"

    def _unknown_inputs(self) -> Iterator[tuple[int, str]]:
        nodes = self._vertices[Endpoint.PLAN]
        flat, rows = pc.list_flatten(nodes), _parents(nodes)
        inputs = pc.struct_field(flat, "inputs")
        fed_rows = rows[_parents(inputs)]
        ids, fed_by = pc.struct_field(flat, "id"), pc.struct_field(pc.list_flatten(inputs), "id")
        codes, known = _encode(pa.concat_arrays([ids, fed_by]))
        named, fed = rows * known + codes[: len(ids)], fed_rows * known + codes[len(ids) :]
        for place in np.flatnonzero(~np.isin(fed, named) | _flags(pc.is_null(fed_by))).tolist():
            yield int(fed_rows[place]), f"no vertex {fed_by[place].as_py()}, which feeds another"

    def _impossible_times(self) -> Iterator[tuple[int, str]]:
        every = np.arange(len(self._event))
        times = pc.struct_field(self._event, "timestamps")
        for state in DATED_STATES:
            yield from self._impossible(every, pc.struct_field(times, state), self._is[Endpoint.JOB])
        of_checkpoints = self._is[Endpoint.CHECKPOINTS]
        history = pc.struct_field(self._event, "history")
        latest = pc.struct_field(pc.struct_field(self._event, "latest"), "completed")
        for rows, some in ((_parents(history), pc.list_flatten(history)), (every, latest)):
            done = _flags(pc.equal(pc.struct_field(some, "status"), CHECKPOINT_COMPLETED)) & of_checkpoints[rows]
            for field in ("trigger_timestamp", "latest_ack_timestamp"):
                yield from self._impossible(rows, pc.struct_field(some, field), done)
        entries = pc.struct_field(pc.struct_field(self._event, "exceptionHistory"), "entries")
        rows = _parents(entries)
        failed_ms = pc.struct_field(pc.list_flatten(entries), "timestamp")
        yield from self._impossible(rows, failed_ms, self._is[Endpoint.EXCEPTIONS][rows])

    def _impossible(self, rows: Ints, times_ms: pa.Int64Array, wanted: Flags) -> Iterator[tuple[int, str]]:
        """Yield the times that cannot be; Flink writes 0 or less for never."""
        at_ms = pc.fill_null(times_ms, 0).to_numpy(zero_copy_only=False)
        bad = wanted & (at_ms > 0) & ((at_ms < EARLIEST_MS) | (at_ms > self._latest_ms[rows]))
        reported = (f"{at} ms since 1970" for at in at_ms[bad].tolist())
        yield from zip(rows[bad].tolist(), reported, strict=True)


def _encode(texts: pa.StringArray) -> tuple[Ints, int]:
    """Return a number for each text (all nulls the same), and how many there are at most."""
    encoded = texts.dictionary_encode()
    known = len(encoded.dictionary)
    return np.asarray(pc.fill_null(encoded.indices.cast(pa.int64()), known)), known + 1


def _parents(lists: pa.ListArray) -> Ints:
    return np.asarray(pc.list_parent_indices(lists), np.int64)


def _where(values: pa.Array, wanted: Flags) -> pa.Array:
    """Return values where they are wanted, null elsewhere."""
    return values.take(pa.array(np.arange(len(values)), mask=~wanted))


def _flags(condition: Any) -> Flags:
    return np.asarray(pc.fill_null(condition, False), np.bool_)


def _rows(flags: Flags) -> list[int]:
    return list(np.flatnonzero(flags).tolist())
