"""How jobs under the Flink Kubernetes operator are found and changed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from include.settings.section import Section, Text, must_fit

_NO_NAME = 'is no name of a Kubernetes resource; write "orders" or "flink-prod", say'
ResourceName = Annotated[Text, must_fit(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", _NO_NAME)]


class Kubernetes(Section):
    """The API server whose operator manages the cluster's jobs; read when `actuator = "kubernetes"`."""

    kubeconfig: Text | None = Field(None, description="API server and login; unset: the pod's service account")
    context: Text | None = Field(None, description="of the kubeconfig file; unset: its current one")
    namespace: ResourceName = Field("default", description="of the resources")
    kind: Literal["FlinkDeployment", "FlinkSessionJob"] = Field(
        "FlinkDeployment", description="of the resources that hold the jobs"
    )
    deployment: ResourceName | None = Field(None, description="only this FlinkDeployment, or session jobs on it")
    resources: dict[str, ResourceName] = Field(
        default_factory=dict,
        description="job in Flink -> resource; others are found by Flink's job id",
    )
    mode: Literal["act", "guide"] = Field(
        "act",
        description="act: parallelism is written; guide: the operator's autoscaler acts, and gets a least "
        "parallelism ahead of load",
    )
    full_upgrade: bool = Field(False, description="steps are sent for which the operator stops the job")
    timeout_s: float = Field(15.0, ge=0.1, le=300, description="s; of a reply")

    @model_validator(mode="after")
    def _context_fits(self) -> Kubernetes:
        if self.context is not None and self.kubeconfig is None:
            raise ValueError('context needs kubeconfig; write kubeconfig = "/etc/tidewise/kubeconfig" as well')
        return self
