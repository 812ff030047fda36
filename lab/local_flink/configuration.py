"""The configuration files and command lines of a local Flink cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from include.flink.versions import Version, name_key
from lab.local_flink.build import ENTRY_CLASS

STANDARD_YAML_SINCE = (1, 19)
"""Earlier versions read ``flink-conf.yaml``, in which quotes are part of a value."""


# Flink's own start scripts open and export these packages on Java 17 (env.java.opts.all of its distribution).
_EXPORTS = (
    "java.base/sun.net.util",  # Flink 1.17
    "java.rmi/sun.rmi.registry",
    "jdk.compiler/com.sun.tools.javac.api",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.compiler/com.sun.tools.javac.parser",
    "jdk.compiler/com.sun.tools.javac.tree",
    "jdk.compiler/com.sun.tools.javac.util",
    "java.security.jgss/sun.security.krb5",
)
_OPENS = (
    *("java.base/java." + leaf for leaf in ("lang", "lang.reflect", "net", "io", "nio", "text", "time", "util")),
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/java.util.concurrent.locks",
    "java.base/sun.nio.ch",
)
JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
APPLICATION = "org.apache.flink.container.entrypoint.StandaloneApplicationClusterEntryPoint"
_TM_HEAP_MB = 512
# A TaskManager started without Flink's scripts computes nothing itself: every memory size must be given.
TASK_MANAGER_RESOURCES: Mapping[str, str] = {
    "taskmanager.cpu.cores": "2.0",
    "taskmanager.memory.framework.heap.size": "128mb",
    "taskmanager.memory.task.heap.size": f"{_TM_HEAP_MB - 128}mb",
    "taskmanager.memory.framework.off-heap.size": "128mb",
    "taskmanager.memory.task.off-heap.size": "0b",
    "taskmanager.memory.managed.size": "64mb",
    "taskmanager.memory.network.min": "64mb",
    "taskmanager.memory.network.max": "64mb",
    "taskmanager.memory.jvm-metaspace.size": "256mb",
    "taskmanager.memory.jvm-overhead.min": "192mb",
    "taskmanager.memory.jvm-overhead.max": "192mb",
}


@dataclass(frozen=True, slots=True)
class Application:
    """A job that the JobManager starts itself, as its only one.

    Attributes:
        jar: of the load job.
        job_id: that it gets.
        arguments: of its program.
    """

    jar: Path
    job_id: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What may differ between local clusters; the intervals are Flink's defaults, checkpoints those of many jobs.

    Attributes:
        slots: slots of a TaskManager.
        task_managers: how many there are.
        checkpoint_every_s: interval of checkpoints, to a local directory.
        cooldown_s: rest of the adaptive scheduler after a rescale.
        stabilisation_s: how long it waits for more slots before it uses what it has.
        metrics_every_s: age at which the JobManager fetches metrics again.
        reporter_ports: where its processes serve metrics to Prometheus, each on the first free one; none: nowhere.
        application: the one job of an application cluster; None for a session cluster.
        settings: of Flink, in the place of ours; an empty value takes a key away.
    """

    slots: int = 8
    task_managers: int = 1
    checkpoint_every_s: float = 60.0
    cooldown_s: float = 30.0
    stabilisation_s: float = 60.0
    metrics_every_s: float = 10.0
    reporter_ports: tuple[int, ...] = ()
    application: Application | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def quick(cls, **changes: Any) -> ClusterOptions:
        """Return those of a cluster whose rescales are quick to watch, kinder than Flink is by default."""
        short = {"checkpoint_every_s": 3.0, "cooldown_s": 2.0, "stabilisation_s": 1.0, "metrics_every_s": 1.0}
        return cls(**{**short, **changes})


def flink_configuration(options: ClusterOptions, ports: Mapping[str, int], work_dir: Path) -> dict[str, str]:
    """Return Flink's settings for a cluster on loopback that keeps everything below ``work_dir``."""
    checkpoint_ms, metrics_ms = round(options.checkpoint_every_s * 1000), round(options.metrics_every_s * 1000)
    cooldown, stabilisation = f"{options.cooldown_s:g} s", f"{options.stabilisation_s:g} s"
    ours = {
        "jobmanager.rpc.address": "127.0.0.1",
        "jobmanager.bind-host": "127.0.0.1",
        "jobmanager.rpc.port": str(ports["rpc"]),
        "rest.address": "127.0.0.1",
        "rest.bind-address": "127.0.0.1",
        "rest.port": str(ports["rest"]),
        "taskmanager.host": "127.0.0.1",
        "taskmanager.bind-host": "127.0.0.1",
        "taskmanager.numberOfTaskSlots": str(options.slots),
        "blob.server.port": "0",
        "io.tmp.dirs": str(work_dir / "tmp"),
        "web.upload.dir": str(work_dir / "upload"),
        "web.refresh-interval": str(metrics_ms),  # GET /jobs/:id is cached this long
        "metrics.fetcher.update-interval": str(metrics_ms),
        # A TaskManager lost while the JobManager asks it for metrics holds up all metrics this long (10 min unset).
        # Without a unit: before Flink 1.20 times of the web interface and of heartbeats are bare milliseconds.
        "web.timeout": "20000",
        "jobmanager.scheduler": "adaptive",
        "jobmanager.adaptive-scheduler.submission.resource-wait-timeout": "120 s",
        "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": stabilisation,
        "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": cooldown,
        "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": stabilisation,
        "heartbeat.interval": "2000",
        "heartbeat.timeout": "10000",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000",
        "restart-strategy.fixed-delay.delay": "1 s",
        "execution.checkpointing.interval": f"{checkpoint_ms} ms",
        "execution.checkpointing.min-pause": f"{checkpoint_ms // 3} ms",
        "execution.checkpointing.dir": (work_dir / "checkpoints").as_uri(),
        "state.backend.type": "hashmap",
        "pekko.ask.timeout": "20 s",
        **_reporter(options.reporter_ports),
    }
    return {key: value for key, value in (ours | dict(options.settings)).items() if value}


def _reporter(ports: tuple[int, ...]) -> dict[str, str]:
    if not ports:
        return {}
    return {
        "metrics.reporters": "prom",
        "metrics.reporter.prom.factory.class": "org.apache.flink.metrics.prometheus.PrometheusReporterFactory",
        "metrics.reporter.prom.port": ",".join(map(str, ports)),
    }


def rename_keys(configuration: Mapping[str, str], version: Version) -> dict[str, str]:
    """Return a configuration with today's names as a version reads it; keys that it does not have are left out."""
    named = ((name_key(key, version), value) for key, value in configuration.items())
    return {key: value for key, value in named if key is not None}


def write_configuration(conf_dir: Path, values: Mapping[str, str], version: Version) -> None:
    """Write Flink's configuration as a version reads it, and that of logging."""
    conf_dir.mkdir(parents=True, exist_ok=True)
    is_yaml, known = version >= STANDARD_YAML_SINCE, sorted(rename_keys(values, version).items())
    lines = [f'{key}: "{value}"' if is_yaml else f"{key}: {value}" for key, value in known]
    (conf_dir / ("config.yaml" if is_yaml else "flink-conf.yaml")).write_text("\n".join(lines) + "\n")
    (conf_dir / "log4j.properties").write_text(
        "rootLogger.level = INFO\n"
        "rootLogger.appenderRef.file.ref = File\n"
        "appender.file.name = File\n"
        "appender.file.type = File\n"
        "appender.file.fileName = ${sys:log.file}\n"
        "appender.file.layout.type = PatternLayout\n"
        "appender.file.layout.pattern = %d{ISO8601} %-5p %-60c %x - %m%n\n"
    )


def java_command(
    java: str,
    flink_home: Path,
    conf_dir: Path,
    log_file: Path,
    entry_point: str,
    *,
    application: Application | None = None,
) -> list[str]:
    """Return the command line of a JobManager, a TaskManager or another process of Flink.

    The classes of an application are on the class path of all its processes: no client sends them.
    """
    is_worker = entry_point == TASK_MANAGER
    heap_mb = _TM_HEAP_MB
    command = [java, f"-Xms{heap_mb}m", f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-XX:MaxMetaspaceSize=256m"]
    command += [f"--add-exports={package}=ALL-UNNAMED" for package in _EXPORTS]
    command += [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENS]
    command += [f"-Dlog.file={log_file}", f"-Dlog4j.configurationFile={(conf_dir / 'log4j.properties').as_uri()}"]
    jars = f"{flink_home / 'lib'}/*" + (f":{application.jar}" if application is not None else "")
    command += ["-cp", jars, entry_point, "--configDir", str(conf_dir)]
    if application is not None and entry_point == APPLICATION:
        command += ["--job-classname", ENTRY_CLASS, "--job-id", application.job_id, *application.arguments]
    if is_worker:
        for key, value in TASK_MANAGER_RESOURCES.items():
            command += ["-D", f"{key}={value}"]
    return command
