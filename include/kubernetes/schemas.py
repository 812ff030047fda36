"""Checks resources of Flink against the schemas of the operator's CustomResourceDefinitions (data/kubernetes)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import yaml

from include.kubernetes.job_resource import PLURALS, VERSION
from include.settings import PROJECT

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

CRDS = PROJECT / "data" / "kubernetes" / "crds"


class SchemaError(ValueError):
    """A resource is not what its schema allows; the message says where."""


def check_resource(resource: Mapping[str, Any]) -> None:
    """Refuse a resource, or a patch of one, that its schema does not allow.

    Raises:
        SchemaError: what is wrong, and where.
        KeyError: there is no schema of its kind.
    """
    for fault in _validator(str(resource["kind"])).iter_errors(dict(resource)):
        where = "/".join(map(str, fault.absolute_path)) or "the resource"
        raise SchemaError(f"{resource['kind']}: {where}: {fault.message[:200]}")


@lru_cache
def _validator(kind: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # loads for half a second, and where it is needed alone

    definition = yaml.safe_load((CRDS / f"{PLURALS[kind]}.yml").read_text())
    versions = {one["name"]: one for one in definition["spec"]["versions"]}
    return Draft202012Validator(_close(versions[VERSION]["schema"]["openAPIV3Schema"], is_root=True))


def _close(schema: Any, *, is_root: bool = False) -> Any:
    """Return a schema under which a field that it does not name is refused, as a strict API server does."""
    if not isinstance(schema, dict):
        return schema
    closed = {key: _close(value) for key, value in schema.items() if key != "properties"}
    if schema.get("x-kubernetes-int-or-string"):
        closed.pop("type", None)
    if "properties" in schema:
        closed["properties"] = {name: _close(one) for name, one in schema["properties"].items()}
        if not is_root and not schema.get("x-kubernetes-preserve-unknown-fields"):
            closed["additionalProperties"] = False
    return closed
