"""A real Kubernetes API server on loopback, and the Flink Kubernetes operator as a process, from parts that are given.

``KUBE_APISERVER`` names the program of an API server, ``ETCD`` that of etcd (otherwise the one on the path), and
``OPERATOR_JAR`` the shaded jar of the operator with its folders ``log4j`` and ``crds`` beside it. A test that lacks a
part is skipped and says which.
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.java_build import java_tool
from include.kubernetes.api import CustomResourceApi, open_api
from include.settings.kubernetes import Kubernetes
from lab.local_flink.cluster import free_ports
from lab.local_flink.processes import end_process, start_process

CRDS = Path(__file__).parents[2] / "data" / "kubernetes" / "crds"


def find_part(variable: str, fallback: str = "") -> Path:
    """Return the part that an environment variable names; the test is skipped, by name, where it is missing."""
    named = os.environ.get(variable) or (fallback and shutil.which(fallback))
    if not named:
        pytest.skip(f"{variable} is not set: it names a part that this test needs (docs/kubernetes.md, Tests)")
    path = Path(named)
    if not path.exists():
        pytest.skip(f"{variable} = {path} does not exist (docs/kubernetes.md, Tests)")
    return path.resolve()


@dataclass(frozen=True)
class LocalApi:
    """A running API server.

    Attributes:
        url: its address.
        work_dir: of its files, and of kubeconfig files.
        client: of ``kubernetes.client``, with all rights.
    """

    url: str
    work_dir: Path
    client: Any

    def kubeconfig(self, token: str = "admin-token") -> Path:
        """Return a kubeconfig file with a login."""
        path = self.work_dir / f"kubeconfig-{token}"
        cluster = {"server": self.url, "insecure-skip-tls-verify": True}
        context = {"cluster": "local", "user": "local", "namespace": "default"}
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "local", "cluster": cluster}],
                    "users": [{"name": "local", "user": {"token": token}}],
                    "contexts": [{"name": "local", "context": context}],
                    "current-context": "local",
                }
            )
        )
        return path

    def resources(self, token: str = "admin-token") -> CustomResourceApi:
        """Return the resources of the namespace ``default`` as Tidewise opens them."""
        return open_api(Kubernetes(kubeconfig=str(self.kubeconfig(token))))

    def custom(self) -> Any:
        """Return the client of custom resources, with all rights."""
        from kubernetes.client import CustomObjectsApi

        return CustomObjectsApi(self.client)

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """Return the reply to any request, with all rights."""
        headers = {"Content-Type": kind, "Accept": "application/json"}
        reply = self.client.call_api(
            path,
            method,
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
            response_type="object",
        )
        return reply[0]

    def apply(self, manifest: Mapping[str, Any]) -> None:
        """Create what a manifest says."""
        from kubernetes.utils import create_from_dict

        create_from_dict(self.client, dict(manifest))


@contextmanager
def running_api_server(work_dir: Path) -> Iterator[LocalApi]:
    """Run etcd and an API server with the Flink resources; logins: ``admin-token`` and ``tidewise-token``."""
    server, etcd = find_part("KUBE_APISERVER"), find_part("ETCD", "etcd")
    work_dir.mkdir(parents=True, exist_ok=True)
    port, client_port, peer_port = free_ports(3)
    for command in (["genrsa", "-out", "sa.key", "2048"], ["rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"]):
        subprocess.run(["openssl", *command], cwd=work_dir, check=True, capture_output=True)
    (work_dir / "tokens.csv").write_text(
        'admin-token,admin,1,"system:masters"\ntidewise-token,system:serviceaccount:default:tidewise,2\n'
        "nobody-token,nobody,3\n"
    )
    store = f"http://127.0.0.1:{client_port}"
    etcd_command = [str(etcd), "--data-dir", str(work_dir / "etcd"), "--listen-client-urls", store]
    etcd_command += ["--advertise-client-urls", store, "--listen-peer-urls", f"http://127.0.0.1:{peer_port}"]
    command = [
        *(str(server), f"--etcd-servers={store}", "--service-account-issuer=https://127.0.0.1"),
        *(f"--service-account-key-file={work_dir / 'sa.pub'}", f"--secure-port={port}", "--bind-address=127.0.0.1"),
        *(f"--service-account-signing-key-file={work_dir / 'sa.key'}", f"--token-auth-file={work_dir / 'tokens.csv'}"),
        *("--authorization-mode=RBAC", f"--cert-dir={work_dir / 'certs'}", "--service-cluster-ip-range=10.0.0.0/24"),
        "--disable-admission-plugins=ServiceAccount",
    ]
    url = f"https://127.0.0.1:{port}"
    processes = [start_process(etcd_command, work_dir / "etcd.log", {})]
    try:
        processes.append(start_process(command, work_dir / "apiserver.log", {}))
        _wait_until_ready(url, processes, work_dir)
        api = LocalApi(url, work_dir, None)
        api = LocalApi(url, work_dir, api.resources().client)
        _install_crds(api)
        yield api
    finally:
        for process in reversed(processes):
            end_process(process)


@contextmanager
def running_operator(api: LocalApi, work_dir: Path, settings: Mapping[str, str] = {}) -> Iterator[Path]:
    """Run the operator on the namespace ``default``; yields its log file."""
    jar = find_part("OPERATOR_JAR")
    conf = work_dir / "conf"
    conf.mkdir(parents=True)
    (work_dir / "plugins").mkdir()
    (health,) = free_ports(1)
    configuration = {
        "kubernetes.operator.reconcile.interval": "5 s",
        "kubernetes.operator.observer.progress-check.interval": "2 s",
        "kubernetes.operator.user.artifacts.allowed-schemes": "file;https",
        "kubernetes.operator.health.probe.port": str(health),
        "kubernetes.operator.watched.namespaces": "default",
        **settings,
    }
    (conf / "config.yaml").write_text("".join(f'{key}: "{value}"\n' for key, value in configuration.items()))
    (conf / "log4j2.properties").write_text(
        "rootLogger.level = INFO\nrootLogger.appenderRef.out.ref = Out\nappender.out.name = Out\n"
        "appender.out.type = CONSOLE\nappender.out.layout.type = PatternLayout\n"
        "appender.out.layout.pattern = %d{HH:mm:ss} %-5p %c{1} %m%n\n"
    )
    environment = {
        "KUBECONFIG": str(api.kubeconfig()),
        "FLINK_CONF_DIR": str(conf),
        "CONF_OVERRIDE_DIR": str(conf),
        "FLINK_PLUGINS_DIR": str(work_dir / "plugins"),
        "OPERATOR_NAMESPACE": "default",
    }
    command = [java_tool("java"), "-Xmx400m", f"-Dlog4j2.configurationFile={conf / 'log4j2.properties'}"]
    command += ["-cp", f"{jar.parent / 'log4j'}/*:{jar}", "org.apache.flink.kubernetes.operator.FlinkOperator"]
    process = start_process(command, work_dir / "operator.log", environment)
    try:
        yield work_dir / "operator.log"
    finally:
        end_process(process)


def _install_crds(api: LocalApi) -> None:
    from kubernetes.client import ApiextensionsV1Api

    extensions = ApiextensionsV1Api(api.client)
    given = os.environ.get("OPERATOR_JAR")
    folder = Path(given).parent / "crds" if given else CRDS
    for path in sorted((folder if folder.is_dir() else CRDS).glob("*.y*ml")):
        extensions.create_custom_resource_definition(yaml.safe_load(path.read_text()))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            api.resources().list_resources("FlinkDeployment")
            api.resources().list_resources("FlinkSessionJob")
            return
        except Exception:
            time.sleep(0.3)
    raise AssertionError("the Flink resources are not served")


def _wait_until_ready(url: str, processes: list[subprocess.Popen[bytes]], work_dir: Path) -> None:
    context = ssl._create_unverified_context()
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        for process in processes:
            assert process.poll() is None, "".join(log.read_text()[-3000:] for log in work_dir.glob("*.log"))
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=2, context=context):
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError((work_dir / "apiserver.log").read_text()[-3000:])
