"""Mutations of raw lines: of the text, of the envelope, and of the reply in it.

Each takes a line, as text, and gives what is written instead of it, without a newline.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from include.flink.raw_format import Endpoint
from tests.fuzz import junk

Envelope = dict[str, Any]
Mutation = Callable[[random.Random, str], bytes]


def _of_text(change: Callable[[random.Random, str], str]) -> Mutation:
    return lambda random_, line: change(random_, line).encode("utf-8", "surrogatepass")


def _of_envelope(change: Callable[[random.Random, Envelope], object]) -> Mutation:
    def mutate(random_: random.Random, line: str) -> bytes:
        envelope = json.loads(line)
        changed = change(random_, envelope)
        return dump(changed if isinstance(changed, dict) else envelope)

    return mutate


def _of_body(change: Callable[[random.Random, Any], Any]) -> Mutation:
    """A mutation of what the body holds; a string that is returned is the body."""

    def mutate(random_: random.Random, line: str) -> bytes:
        envelope = json.loads(line)
        changed = change(random_, json.loads(envelope["body"]))
        envelope["body"] = changed if isinstance(changed, str) else json.dumps(changed)
        return dump(envelope)

    return mutate


def dump(envelope: Envelope) -> bytes:
    """Write an envelope as the poller does; half a surrogate pair stays escaped."""
    text = json.dumps(envelope, separators=(",", ":"), ensure_ascii=False)
    return (text if _is_text(text) else json.dumps(envelope, separators=(",", ":"))).encode()


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _two(between: str) -> Mutation:
    return _of_text(lambda random_, line: line + between + line)


def _deep(random_: random.Random, line: str) -> str:
    depth = random_.choice([500, 5_000, 50_000])
    return line[:-1] + ',"deep":' + "[" * depth + "]" * depth + "}"


def _bytes_inside(piece: bytes) -> Mutation:
    def mutate(random_: random.Random, line: str) -> bytes:
        raw = line.encode()
        place = random_.randrange(len(raw))
        return raw[:place] + piece + raw[place:]

    return mutate


def _set(field: str, choices: list[Any]) -> Mutation:
    return _of_envelope(lambda random_, envelope: envelope.update({field: random_.choice(choices)}))


def _is_name(way: tuple[Any, ...]) -> bool:
    return way[-1] == "name"


def _is_id(way: tuple[Any, ...]) -> bool:
    return way[-1] in ("id", "jid")


def _is_time(way: tuple[Any, ...]) -> bool:
    return "timestamp" in str(way[-1]) or "timestamps" in way


def _same_name(_: random.Random, body: Any) -> Any:
    for vertex in body.get("vertices", []) if isinstance(body, dict) else []:
        vertex["name"] = "x"
    return body


def _same_id(_: random.Random, body: Any) -> Any:
    result = body.get("vertices") or body.get("plan", {}).get("nodes") if isinstance(body, dict) else body
    for one in result or []:
        one["id"] = result[0]["id"]
    return body


def _circle(_: random.Random, body: Any) -> Any:
    nodes = body.get("plan", {}).get("nodes", []) if isinstance(body, dict) else []
    for one, other in zip(nodes, nodes[1:] + nodes[:1], strict=True):
        one["inputs"] = [{"id": other["id"], "ship_strategy": "HASH"}]
    return body


def _twice(random_: random.Random, body: Any) -> str:
    return random_.choice(["", " ", ","]).join([json.dumps(body)] * 2)


def _bare(random_: random.Random, body: Any) -> str:
    word = random_.choice(["NaN", "Infinity", "-Infinity", "1e999", "-0", "01", "0x1", "1_000", "tru"])
    return json.dumps(body).replace(": 0.0", f": {word}", 1).replace("true", word)


TEXT: dict[str, Mutation] = {
    "text: cut": _of_text(lambda random_, line: line[: random_.randrange(len(line))]),
    "text: two records": _two(""),
    "text: two records, blank": _two(" "),
    "text: two records, tab": _two("\t"),
    "text: two records, comma": _two(","),
    "text: comma at the end": _of_text(lambda _, line: line + ","),
    "text: blanks around": _of_text(lambda _, line: f" \t{line} "),
    "text: blank": _of_text(lambda random_, _: random_.choice(["", " ", "\t\t"])),
    "text: no JSON": _of_text(lambda random_, _: random_.choice(["x", "<html>", "null", "[]", "1", '"x"', "{}", "}{"])),
    "text: single quotes": _of_text(lambda _, line: line.replace('"', "'")),
    "text: too deep": _of_text(_deep),
    "text: long": _of_text(lambda _, line: line[:-1] + ',"more":"' + "x" * 200_000 + '"}'),
    "text: Latin-1": _bytes_inside(b"\xe9"),
    "text: NUL": _bytes_inside(b"\x00"),
    "text: control": _bytes_inside(b"\x1b"),
    "text: surrogate": _bytes_inside(b"\xed\xa0\xbd"),
    "text: BOM": lambda _, line: b"\xef\xbb\xbf" + line.encode(),
    "text: UTF-16": lambda _, line: line.encode("utf-16").replace(b"\n", b"").replace(b"\r", b""),
}
ENVELOPE: dict[str, Mutation] = {
    "envelope: field gone": _of_envelope(junk.drop),
    "envelope: field is junk": _of_envelope(lambda random_, envelope: junk.put(random_, envelope, junk.VALUES)),
    "envelope: field twice": _of_text(lambda _, line: line[:-1] + ',"kind":"job","kind":"plan"}'),
    "envelope: more fields": _of_envelope(lambda random_, envelope: envelope.update(more=random_.choice(junk.VALUES))),
    "envelope: other order": _of_envelope(lambda _, envelope: dict(reversed(envelope.items()))),
    "envelope: cluster": _set("cluster", junk.NAMES),
    "envelope: kind": _set("kind", [*map(str, Endpoint), "gossip", "", "JOB"]),
    "envelope: job id": _set("job_id", junk.IDS),
    "envelope: vertex id": _set("vertex_id", junk.IDS),
    "envelope: time": _set("observed_at_ms", junk.TIMES_MS),
    "envelope: status": _set("status", [0, 204, 302, 404, 500, "200", 200.0, None, 2**31, True]),
    "envelope: body": _set("body", [*junk.VALUES, "<html>", "{}", "[]", "null"]),
}
BODY: dict[str, Mutation] = {
    "body: junk somewhere": _of_body(lambda random_, body: junk.put(random_, body, junk.VALUES)),
    "body: something gone": _of_body(junk.drop),
    "body: cut": _of_body(lambda random_, body: json.dumps(body)[: random_.randrange(len(json.dumps(body)))]),
    "body: two documents": _of_body(_twice),
    "body: blanks around": _of_body(lambda _, body: f" {json.dumps(body)} "),
    "body: name": _of_body(lambda random_, body: junk.put(random_, body, junk.NAMES, _is_name)),
    "body: one name for all": _of_body(_same_name),
    "body: id": _of_body(lambda random_, body: junk.put(random_, body, junk.IDS, _is_id)),
    "body: one id for all": _of_body(_same_id),
    "body: time": _of_body(lambda random_, body: junk.put(random_, body, junk.TIMES_MS, _is_time)),
    "body: circle": _of_body(_circle),
    "body: bare word": _of_body(_bare),
    "body: list or object": _of_body(lambda _, body: [body] if isinstance(body, dict) else {"metrics": body}),
    "body: huge": _of_body(lambda _, body: json.dumps(body)[:-1] + " " * 500_000 + json.dumps(body)[-1:]),
}  # fmt: skip
MUTATIONS: dict[str, Mutation] = {**TEXT, **ENVELOPE, **BODY}
