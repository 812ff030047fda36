"""JSON with holes: written once per job, filled in at every poll."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from lab.simulation.spec import JobSpec

HOLE = "\x00"
_WRITTEN_HOLE = '"\\u0000"'


def dumps(value: object) -> str:
    """Write JSON without spaces, as Flink does."""
    return json.dumps(value, separators=(",", ":"))


def build_template(value: object) -> str:
    """Write JSON as a %-template in which every :data:`HOLE` takes an integer, in the order of writing."""
    return dumps(value).replace("%", "%%").replace(_WRITTEN_HOLE, "%d")


def hash_to_id(*parts: str) -> str:
    """Return a stable id of 32 hex digits, as Flink's job and vertex ids look."""
    return hashlib.blake2b("/".join(parts).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Ids:
    """Flink's ids of a job and its vertices, in the order of the operators."""

    job: str
    vertices: tuple[str, ...]

    @classmethod
    def of(cls, cluster: str, spec: JobSpec) -> Ids:
        """Derive the ids from cluster, job name and operator names."""
        return cls(
            hash_to_id(cluster, spec.name),
            tuple(hash_to_id(cluster, spec.name, operator.name) for operator in spec.operators),
        )
