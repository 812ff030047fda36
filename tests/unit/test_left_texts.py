"""Texts that Arrow refuses: what is still read of them, and how the others are named."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from spark_jobs.raw_parsing.left_texts import find_body_fault, read_body, read_line

ENVELOPE = pa.struct([("observed_at_ms", pa.int64()), ("kind", pa.string()), ("status", pa.int32())])
GOOD = {"observed_at_ms": 5, "kind": "job", "status": 200}
REPLY = pa.struct(
    [("name", pa.string()), ("vertices", pa.list_(pa.struct([("id", pa.string()), ("parallelism", pa.int32())])))]
)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        f" \t{json.dumps(GOOD)} ",
        json.dumps({**GOOD, "more": [1]}),
        '{"kind":"x",' + json.dumps(GOOD)[1:],
    ],
)
def test_an_envelope_is_read_whatever_stands_around_it(text):
    line = read_line(text.encode(), ENVELOPE)
    assert (line.envelope, line.fault, line.raw_bytes, line.text) == (GOOD, None, None, text)


@pytest.mark.covers("ingest_review 2.6")
@pytest.mark.parametrize("between", ["", " ", "\t", ",", ", ", "; "])
def test_two_records_are_not_one(between):
    line = read_line(between.join([json.dumps(GOOD)] * 2).encode(), ENVELOPE)
    assert line.fault == {"reason": "malformed_json", "detail": "two records on one line"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "malformed_json"),
        ("null", "malformed_json"),
        ("[]", "malformed_json"),
        ("{} x", "malformed_json"),
        (json.dumps(GOOD) + ",", "malformed_json"),
        ("[" * 100_000, "malformed_json"),
        (json.dumps({**GOOD, "status": "200"}), "wrong_type"),
        (json.dumps({**GOOD, "status": 200.0}), "wrong_type"),
        (json.dumps({**GOOD, "status": True}), "wrong_type"),
        (json.dumps({**GOOD, "status": 2**31}), "wrong_type"),
        (json.dumps({**GOOD, "observed_at_ms": float("nan")}), "wrong_type"),
        ('{"observed_at_ms":1' + "0" * 5_000 + "}", "malformed_json"),
    ],
)
def test_what_is_no_envelope_is_named(text, reason):
    line = read_line(text.encode(), ENVELOPE)
    assert line.envelope is None
    assert line.fault is not None
    assert line.fault["reason"] == reason


@pytest.mark.covers("ingest_review 2.9")
def test_bytes_that_are_no_text_are_kept_beside_a_text_that_shows_them():
    line = read_line(b'{"kind":"caf\xe9"}', ENVELOPE)
    assert line.text == '{"kind":"caf\\xe9"}'
    assert line.raw_bytes == b'{"kind":"caf\xe9"}'
    assert line.fault == {"reason": "bad_encoding", "detail": "byte 13 of the line"}


def test_of_a_body_the_fields_of_the_expected_types_are_read():
    body = {"name": 5, "vertices": [{"id": "a", "parallelism": "2"}, 7, {"parallelism": 3}], "more": {}}
    result, fault = read_body(json.dumps(body), REPLY)
    assert fault is None
    retained = [{"id": "a", "parallelism": None}, None, {"id": None, "parallelism": 3}]
    assert result == {"name": None, "vertices": retained}
    assert read_body('{"name":"\\ud83d"}', REPLY)[0]["name"] == "?"


@pytest.mark.parametrize(
    ("body", "reason"), [("[]", "wrong_type"), ("{} {}", "malformed_json"), ("<html>", "malformed_json")]
)
def test_what_is_no_body_is_named(body, reason):
    assert read_body(body, REPLY)[1]["reason"] == reason


def test_a_body_of_metrics_may_hold_words_that_stand_for_numbers():
    assert find_body_fault('[{"sum": NaN, "avg": -Infinity}]') is None
    assert find_body_fault("[] []") == {"reason": "malformed_json", "detail": "body: more than one"}
