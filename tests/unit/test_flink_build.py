"""Prerequisites that are missing are named with their remedy; configuration has what a cluster of processes needs."""

import zipfile

import pytest

from cli.java_build import JavaBuildError
from lab.local_flink import build
from lab.local_flink.cluster import ClusterNotReadyError, ClusterOptions, LocalCluster
from lab.local_flink.configuration import (
    JOB_MANAGER,
    TASK_MANAGER,
    TASK_MANAGER_RESOURCES,
    flink_configuration,
    java_command,
)


def test_missing_java_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(JavaBuildError, match="install a JDK 17 or 21"):
        build.java_tool("java")


def test_java_home_comes_before_the_path(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "javac").write_text("")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert build.java_tool("javac") == str(tmp_path / "bin" / "javac")


def test_missing_jars_name_the_remedy_and_start_nothing(tmp_path):
    cluster = LocalCluster(tmp_path / "work", flink_home=tmp_path)
    with pytest.raises(JavaBuildError, match="make setup"), cluster:
        pytest.fail("entered without Flink")
    assert cluster.process_ids == []


def test_a_cluster_that_was_not_started_has_no_client(tmp_path):
    with pytest.raises(ClusterNotReadyError, match="context manager"):
        _ = LocalCluster(tmp_path).rest_url


def flink_home(folder):
    (folder / "lib").mkdir(parents=True)
    with zipfile.ZipFile(folder / "lib" / "flink-dist-2.1.3.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    return folder


def test_the_jars_name_follows_the_sources_and_a_compiler_error_is_shown(tmp_path, monkeypatch):
    home = flink_home(tmp_path / "flink")
    sources = tmp_path / "src"
    sources.mkdir()
    (sources / "A.java").write_text("public final class A { private A() {} }")
    first = build.build_job(home, [sources], tmp_path / "out")
    content = first.read_bytes()
    stamp = first.stat().st_mtime_ns
    assert build.build_job(home, [sources], tmp_path / "out") == first
    assert first.stat().st_mtime_ns == stamp  # kept, not compiled again
    first.unlink()
    assert build.build_job(home, [sources], tmp_path / "out").read_bytes() == content  # same bytes from same sources
    (sources / "A.java").write_text("class A { oops }")
    with pytest.raises(JavaBuildError, match=r"A\.java:1"):  # the jar of the sources before is not theirs
        build.build_job(home, [sources], tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == [first]


def test_configuration_stays_on_loopback_and_below_the_work_dir(tmp_path):
    values = flink_configuration(ClusterOptions(checkpoint_every_s=2.5), {"rest": 1, "rpc": 2}, tmp_path)
    hosts = [value for key, value in values.items() if key.endswith(("host", "address"))]
    assert set(hosts) == {"127.0.0.1"}
    assert values["execution.checkpointing.interval"] == "2500 ms"
    assert values["execution.checkpointing.dir"].startswith(tmp_path.as_uri())
    assert values["jobmanager.scheduler"] == "adaptive"


def test_a_cluster_is_as_flink_is_unless_it_is_to_be_quick(tmp_path):
    ports = {"rest": 1, "rpc": 2}
    plain, quick = (
        flink_configuration(one, ports, tmp_path) for one in (ClusterOptions(), ClusterOptions.quick(slots=2))
    )
    assert plain["metrics.fetcher.update-interval"] == "10000"
    assert plain["execution.checkpointing.interval"] == "60000 ms"
    assert quick["metrics.fetcher.update-interval"] == "1000"
    assert quick["taskmanager.numberOfTaskSlots"] == "2"


def test_a_taskmanager_is_given_every_memory_size(tmp_path):
    worker = java_command("java", tmp_path, tmp_path, tmp_path / "log", TASK_MANAGER)
    master = java_command("java", tmp_path, tmp_path, tmp_path / "log", JOB_MANAGER)
    assert {part.split("=")[0] for part in worker if part.startswith("taskmanager.")} == set(TASK_MANAGER_RESOURCES)
    assert not any(part.startswith("taskmanager.") for part in master)
