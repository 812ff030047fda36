"""``tidewise manifests``: write what Tidewise needs in a Kubernetes cluster: rights, network, monitoring, Argo CD."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from cli.arguments import CommandParser, UsageError
from cli.command import command
from cli.light_start import leave_out
from include.atomic_write import write_text
from include.kubernetes.controller_manifests import ControllerPod, form_controller
from include.kubernetes.job_resource import PLURALS
from include.kubernetes.manifests import Manifest, Placement, form_manifests
from include.kubernetes.schemas import check_resource
from include.settings import load_settings

OUT = Path("out") / "manifests"
HEADER = "# Written by `tidewise manifests` for {what}; docs/kubernetes.md says what each file is for.\n"


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder to write into (default: {OUT})")
    parser.add_argument("--cluster", action="append", default=[], help="only this cluster; may be given several times")
    parser.add_argument("--namespace", default="tidewise", help="where Tidewise's own pods run (default: tidewise)")
    parser.add_argument("--name", default="tidewise", help="of its service account and pods (default: tidewise)")
    parser.add_argument("--image", help="of Containerfile: also write the controller as a pod")


def to_yaml(manifests: Sequence[Manifest]) -> str:
    """Return manifests as one YAML text; those of Flink are checked against their schemas.

    Raises:
        SchemaError: a manifest is not what its schema allows.
    """
    for one in manifests:
        if one["kind"] in PLURALS:
            check_resource(one)
    text: Any = yaml.safe_dump_all(manifests, sort_keys=False, width=120, default_flow_style=False)
    return str(text)


def run(options: argparse.Namespace, _: float) -> None:
    """Write the manifests of each cluster.

    Raises:
        UsageError: no cluster is meant.
    """
    leave_out("rfc3987_syntax")  # a grammar for formats of texts, which no schema of Flink's resources asks for
    settings = load_settings()
    unknown = sorted(set(options.cluster) - set(settings.clusters))
    chosen = {name: one for name, one in settings.clusters.items() if name in (options.cluster or settings.clusters)}
    wanted = {name: one for name, one in chosen.items() if options.cluster or one.actuator == "kubernetes"}
    if unknown or not (wanted or options.image):
        why = f"the settings name no cluster {unknown[0]}" if unknown else 'no cluster has actuator = "kubernetes"'
        raise UsageError(f"{why}; write it into tidewise.toml, or name one with --cluster")
    placement = Placement(options.namespace, options.name)
    files = {
        Path(name) / file: (f"cluster {name}", manifests)
        for name, cluster in wanted.items()
        for file, manifests in form_manifests(name, cluster, placement).items()
    }
    if options.image:
        controller = form_controller(settings, placement, ControllerPod(options.image, options.cluster))
        files |= {Path(file): ("the controller", manifests) for file, manifests in controller.items()}
    for file, (what, manifests) in files.items():
        path = options.out / file
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, HEADER.format(what=what) + to_yaml(manifests))
        print(f"manifests: {path}: {', '.join(one['kind'] for one in manifests)}")


main = command("manifests", __doc__, _add_arguments, run)
