"""What would be sent for a step and its neighbours, to copy: formed by what forms it for the controller."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from fleet.facts import StepFact
from include.flink import endpoints
from include.kubernetes.overrides import OVERRIDES, form_configuration_patch, write_overrides


@dataclass(frozen=True, slots=True)
class ResizeRequest:
    """A size of a job as Flink's REST API and as the operator's resource take it.

    Attributes:
        body: of the PUT request, JSON.
        patch: a merge-patch of the FlinkDeployment, YAML.
    """

    name: str
    slots: int | None
    body: str
    patch: str


def form_copies(step: StepFact, vertices: Mapping[str, str]) -> Iterator[ResizeRequest]:
    """Yield the copies of a step and of its neighbours, but of none with an operator whose vertex is not known.

    ``vertices``: operator -> vertex id.
    """
    sizes = [("this step", step.slots_to, step.parallelism_to)]
    neighbours = (("safer", step.safer), ("cheaper", step.cheaper))
    sizes += [(name, one.slots, one.parallelism) for name, one in neighbours if one is not None]
    for name, slots, parallelism in sizes:
        if parallelism.keys() - vertices.keys():
            continue
        by_id = {vertices[operator]: count for operator, count in parallelism.items()}
        patch = form_configuration_patch({}, {OVERRIDES: write_overrides(by_id, None)}, "")
        body = json.dumps(endpoints.requirements_body(by_id), indent=1)
        yield ResizeRequest(name, slots, body, yaml.safe_dump({"spec": patch["spec"]}, width=10**9))


def name_request(job_id: str) -> str:
    """Return the request whose body a copy is."""
    return f"PUT {endpoints.job_path(job_id, 'resource-requirements')}"
