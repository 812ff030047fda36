"""A Flink job that reads a topic, compiled for the tests; the connector travels inside its jar."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from cli.java_build import java_tool
from lab.local_flink.build import flink_jars
from lab.local_flink.job_client import JobClient
from tools.test_parts import PartMissingError, find_kafka_connector

SOURCE_FILE = Path(__file__).parent / "java" / "KafkaJob.java"
JOB, SOURCE = "kafka-orders", "Source: orders"


def build_kafka_job(work_dir: Path) -> Path:
    """Compile the job; returns its jar. The test is skipped where there is no connector."""
    try:
        libraries = find_kafka_connector()
    except PartMissingError as error:
        pytest.skip(str(error))
    classes = work_dir / "classes"
    path = ":".join(map(str, [*flink_jars(), *libraries]))
    command = [java_tool("javac"), "-cp", path, "-d", str(classes), str(SOURCE_FILE)]
    subprocess.run(command, check=True, capture_output=True)
    jar = work_dir / "kafka-job.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for file in classes.rglob("*.class"):
            archive.write(file, file.relative_to(classes))
        for library in libraries:  # Flink adds jars in lib/ of a job's jar to its class path
            archive.write(library, f"lib/{library.name}")
    return jar


def submit_kafka_job(client: JobClient, jar: Path, servers: str, topic: str) -> str:
    """Start the job; returns its id."""
    return client.run_jar(client.upload_jar(jar), "KafkaJob", [servers, topic])
