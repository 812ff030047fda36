"""A model of the Flink Kubernetes operator and its API server, before the model of Flink."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from change_ledger import CONTROLLER, DEPLOYMENT, PERSON, RESOURCE, Asked
from flink_model import LATE_S, FlinkModel

from controller.actuators.actuator import Actuator, RequestUnknownError
from controller.actuators.operator_actuator import OperatorActuator
from controller.actuators.resource_directory import ResourceDirectory
from include.kubernetes.faults import ApiConflictError, ApiError, ApiRefusedError
from include.kubernetes.overrides import OVERRIDES, OverridesError, read_overrides
from include.settings.kubernetes import Kubernetes
from models.control.readiness import Failure, Readiness
from models.control.state import ObservedJob

NAME = "orders"
AUTOSCALER = "job.autoscaler.enabled"


@dataclass
class OperatorModel(FlinkModel):
    """A FlinkDeployment, the operator that carries its changes out, and Flink.

    Attributes:
        configuration: of the spec.
        version, generation, dealt_with: of the resource, of its spec, and of what the operator has carried out.
        reconciled: configuration that the operator has carried out last.
        is_up: whether the operator works; what is written meanwhile waits.
        is_ours: whether the map was last written by a controller.
        late_patches: on their way: (arrives at, patch).
    """

    configuration: dict[str, str] = field(default_factory=lambda: {"jobmanager.scheduler": "adaptive"})
    version: int = 1
    generation: int = 1
    dealt_with: int = 1
    reconciled: dict[str, str] = field(default_factory=dict)
    is_up: bool = True
    is_ours: bool = False
    submitted_at_s: float = 0.0
    late_patches: list[tuple[float, dict[str, Any]]] = field(default_factory=list)

    def open_actuator(self) -> Actuator:
        api = ModelApi(self)
        return OperatorActuator(ModelFlink(self), api, ResourceDirectory(api, Kubernetes()))

    @property
    def is_pending(self) -> bool:
        return self.dealt_with != self.generation

    @property
    def map(self) -> dict[str, int]:
        try:
            return {one: p for one, p in read_overrides(self.configuration).items() if one in self.requested}
        except OverridesError:
            return {}

    @property
    def asked(self) -> dict[str, int]:
        return {**self.requested, **self.map} if self.is_pending else self.requested

    @property
    def told(self) -> Asked:
        return Asked(dict(self.asked), dict(self.lower), self.map)

    def is_explained_by_map(self) -> bool:
        """Whether the resource says what the job is to run at, and a controller wrote it or was told of it."""
        reported = self.ledger.told
        return set(self.map) == set(self.vertices) and (
            self.is_ours or (reported is not None and reported.resource == self.map)
        )

    @property
    def can_act(self) -> bool:
        """Whether a change of the map would now be carried out in place, by nobody else's leave."""
        is_adaptive = self.configuration["jobmanager.scheduler"] == "adaptive"
        return is_adaptive and not self.is_pending and self.configuration.get(AUTOSCALER) != "true"

    def read(self) -> dict[str, Any]:
        reconciled = {"spec": {"flinkConfiguration": self.reconciled}}
        return {
            "kind": "FlinkDeployment",
            "metadata": {
                "name": NAME,
                "namespace": "default",
                "uid": f"uid-of-{NAME}",
                "resourceVersion": str(self.version),
                "generation": self.generation,
            },
            "spec": {"flinkVersion": "v2_1", "flinkConfiguration": dict(self.configuration)},
            "status": {
                "observedGeneration": self.dealt_with,
                "jobStatus": {"jobId": self.job_id, "jobName": NAME, "state": self.state},
                "reconciliationStatus": {"state": "DEPLOYED", "lastReconciledSpec": json.dumps(reconciled)},
            },
        }

    def patch(self, patch: Mapping[str, Any]) -> dict[str, Any]:
        manner, self.manner = self.manner, "accept"
        if manner == "refuse":
            raise ApiRefusedError(422, "not today")
        if manner == "conflict":
            self.version += 1  # the operator has written into the status
        elif manner == "edit":
            self.edit_map([5, 5, 5])
        if patch["metadata"]["resourceVersion"] != str(self.version):
            raise ApiConflictError(409, "the object has been modified")
        self.sent.append((self.now_s, read_overrides(patch["spec"]["flinkConfiguration"])))
        if manner == "lose":
            raise ApiError("connection reset")
        if manner == "late":
            self.late_patches.append((self.now_s + LATE_S, dict(patch)))
            raise ApiError("timed out")
        self._merge(patch)
        if manner == "ignore":
            self.is_up = False
        before = dict(self.running)
        self._carry_out()
        if manner == "half" and not self.is_pending and self.state == "RUNNING":
            self.running = {vertex: (before[vertex] + count + 1) // 2 for vertex, count in self.running.items()}
        if manner == "accept_silently":
            raise ApiError("timed out")
        return self.read()

    def _merge(self, patch: Mapping[str, Any]) -> None:
        changed = {**self.configuration, **patch["spec"]["flinkConfiguration"]}
        assert changed != self.configuration, "the operator would not notice this patch"
        self.is_ours = True
        self._write(changed)
        self.note(CONTROLLER)

    def _write(self, configuration: dict[str, str]) -> None:
        if configuration != self.configuration:
            self.configuration = configuration
            self.version, self.generation = self.version + 1, self.generation + 1

    def _carry_out(self) -> None:
        """Let the operator deal with what is written."""
        if not self.is_up or not self.is_pending:
            return
        changed = self.configuration.get(OVERRIDES) != self.reconciled.get(OVERRIDES)
        self.reconciled, self.dealt_with = dict(self.configuration), self.generation
        self.version += 1
        if changed:
            self._ask({**self.requested, **self.map}, CONTROLLER if self.is_ours else PERSON, fills=True)
        self.note(CONTROLLER if self.is_ours else PERSON)

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        for at_s, patch in [one for one in self.late_patches if one[0] <= self.now_s]:
            self.late_patches.remove((at_s, patch))
            if patch["metadata"]["resourceVersion"] == str(self.version):
                self._merge(patch)
        self._carry_out()

    def edit_map(self, counts: list[int]) -> None:
        """Let a person write the map."""
        text = ",".join(f"{one}:{count}" for one, count in zip(self.vertices, counts, strict=False))
        if text != self.configuration.get(OVERRIDES):
            self.is_ours = False
        self._write({**self.configuration, OVERRIDES: text})
        self.note(PERSON)
        self._carry_out()

    def set_lower_by_person(self, count: int) -> None:
        """Nobody can tell a lower bound that is the upper one from the operator's own."""
        if count < self.requested[self.vertices[0]]:
            super().set_lower_by_person(count)

    def rescale_by_person(self, counts: list[int]) -> None:
        if sum(counts) % 2:
            super().rescale_by_person(counts)
        else:
            self.edit_map(counts)

    def redeploy(self, number: int, graph: int, parallelism: int | Mapping[str, int]) -> None:
        """Give Flink the job again: its map is lost (FLINK-38770), or a person has taken it away."""
        job_id, is_same = self.job_id, graph == self.graph and number % 2
        FlinkModel.redeploy(self, number, graph, parallelism)
        if is_same:
            self.job_id = job_id
        if parallelism == 3:
            self.configuration.pop(OVERRIDES, None)
            self.is_ours = False
        self.submitted_at_s = self.now_s
        self.generation += parallelism == 3
        self.version, self.dealt_with, self.reconciled = self.version + 1, self.generation, dict(self.configuration)
        super().note_deployment(RESOURCE if self.is_explained_by_map() else DEPLOYMENT)

    def note_deployment(self, by: str = DEPLOYMENT) -> None:
        """Noted once the resource has been dealt with."""

    def change(self, key: str, value: str, *, is_up: bool) -> None:
        """Let a person change another key of the spec, and the operator come or go."""
        self.is_up = is_up
        self._write({**self.configuration, key: value})
        self.note(PERSON)
        self._carry_out()


@dataclass
class ModelFlink:
    """What Flink's own REST API tells."""

    model: OperatorModel

    def observe(self, job: str) -> ObservedJob:
        from dataclasses import replace

        return replace(self.model.observe(job), submitted_at_s=self.model.submitted_at_s)

    def observe_all(self, jobs: Iterable[str]) -> dict[str, ObservedJob | RequestUnknownError]:
        return {job: self.observe(job) for job in jobs}

    def read_scheduler(self) -> str:
        return "adaptive"

    def inspect(self, job: str, job_id: str) -> Readiness:
        return self.model.inspect(job, job_id)

    def read_failures(self, job: str, job_id: str) -> tuple[Failure, ...]:
        return self.model.read_failures(job, job_id)

    def trigger_checkpoint(self, job: str, job_id: str) -> None:
        self.model.trigger_checkpoint(job, job_id)


@dataclass
class ModelApi:
    """The API server."""

    model: OperatorModel

    def list_resources(self, kind: str) -> list[Mapping[str, Any]]:
        if self.model.is_silent:
            raise ApiError("no reply")
        return [self.model.read()]

    def read_resource(self, kind: str, name: str) -> Mapping[str, Any] | None:
        return self.list_resources(kind)[0]

    def patch_resource(self, kind: str, name: str, patch: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.model.patch(patch)
