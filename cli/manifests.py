"""``make manifests``: write what Tidewise needs in a Kubernetes cluster: rights, network, monitoring, Argo CD."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from cli.arguments import EXIT_USAGE, CommandParser
from cli.light_start import leave_out
from include.atomic_write import write_text
from include.kubernetes.controller_manifests import ControllerPod, form_controller
from include.kubernetes.job_resource import PLURALS
from include.kubernetes.manifests import Manifest, Placement, form_manifests
from include.kubernetes.schemas import check_resource
from include.settings import SettingsError, load_settings

OUT = Path("out") / "manifests"
HEADER = "# Written by `make manifests` for {what}; docs/kubernetes.md says what each file is for.\n"


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="manifests", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder to write into (default: {OUT})")
    parser.add_argument("--cluster", action="append", default=[], help="only this cluster; may be given several times")
    parser.add_argument("--namespace", default="tidewise", help="where Tidewise's own pods run (default: tidewise)")
    parser.add_argument("--name", default="tidewise", help="of its service account and pods (default: tidewise)")
    parser.add_argument(
        "--image", help="of Containerfile: also write what runs the controller as a pod, which needs no actuator here"
    )
    return parser.parse_args(argv)


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


def main(argv: Sequence[str]) -> int:
    """Write the manifests of each cluster; returns the exit code."""
    options = _parse(argv)
    try:
        settings = load_settings()
    except SettingsError as error:
        print(f"manifests: {error}", file=sys.stderr)
        return EXIT_USAGE
    unknown = sorted(set(options.cluster) - set(settings.clusters))
    chosen = {name: one for name, one in settings.clusters.items() if name in (options.cluster or settings.clusters)}
    wanted = {name: one for name, one in chosen.items() if options.cluster or one.actuator == "kubernetes"}
    if unknown or not (wanted or options.image):
        why = f"the settings name no cluster {unknown[0]}" if unknown else 'no cluster has actuator = "kubernetes"'
        print(f"manifests: {why}; write it into tidewise.toml, or name one with --cluster", file=sys.stderr)
        return EXIT_USAGE
    placement = Placement(options.namespace, options.name)
    files = {
        Path(name) / file: (f"cluster {name}", manifests)
        for name, cluster in wanted.items()
        for file, manifests in form_manifests(name, cluster, placement).items()
    }
    if options.image:
        pod = ControllerPod(options.image, options.cluster)
        try:
            controller = form_controller(settings, placement, pod)
        except SettingsError as error:
            print(f"manifests: {error}", file=sys.stderr)
            return EXIT_USAGE
        files |= {Path(file): ("the controller", manifests) for file, manifests in controller.items()}
    for file, (what, manifests) in files.items():
        path = options.out / file
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, HEADER.format(what=what) + to_yaml(manifests))
        print(f"manifests: {path}: {', '.join(one['kind'] for one in manifests)}")
    return 0


if __name__ == "__main__":
    leave_out("rfc3987_syntax")  # a grammar for formats of texts, which no schema of Flink's resources asks for
    sys.exit(main(sys.argv[1:]))
