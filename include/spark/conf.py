"""The configuration of every Spark session as plain data, for spark-submit and for in-process sessions alike."""

from __future__ import annotations

import os
from collections.abc import Mapping

from include.own_python import find_python
from include.place import local_beside
from include.s3_client import S3Client, read_client
from include.settings import Settings, s3_keys
from include.spark.jars import LOCAL_FILES_CLASS, LOG_STORE_CLASS, SparkJars
from include.tables.schema import AGGREGATE_NUMBERS

JAVA_OPTIONS, JARS = "spark.driver.extraJavaOptions", "spark.jars"
_JOINED = {JARS: ",", JAVA_OPTIONS: " ", "spark.driver.extraClassPath": ":", "spark.executor.extraClassPath": ":"}
"""What both sides may say: name -> what stands between."""


def spark_conf(settings: Settings, jars: SparkJars, master: str) -> dict[str, str]:
    """Return the configuration for a master."""
    everywhere = _everywhere(settings) | _executors(settings)
    if s3_keys(settings):
        everywhere |= _on_s3(read_client(os.environ))
    if not master.startswith("local"):
        result = everywhere | {JARS: ",".join((*jars.delta, *jars.s3))}
    else:
        if jars.class_archive:
            everywhere[JAVA_OPTIONS] += f" {use_archive(jars.class_archive)}"
        result = _local(jars) | everywhere
    return _with_options(result, settings.spark.options)


def _with_options(ours: dict[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration with a team's own options, which the settings have checked; jars come after ours."""
    result = dict(ours)
    for name, value in options.items():
        has_both = name in _JOINED and name in ours
        result[name] = f"{ours[name]}{_JOINED[name]}{value}" if has_both else value
    return result


def _executors(settings: Settings) -> dict[str, str]:
    own = settings.spark
    result = {
        "spark.executor.instances": own.executors,
        "spark.executor.cores": own.executor_cores,
        "spark.executor.memory": own.executor_memory,
        "spark.pyspark.python": own.executor_python,
    }
    if own.executor_python is not None:  # the driver's would be this one as well
        result["spark.pyspark.driver.python"] = find_python()
    return {name: str(value) for name, value in result.items() if value is not None}


def _local(jars: SparkJars) -> dict[str, str]:
    """Return what holds only where every process sees the same disk.

    The jars are on the class path from the start: spark-submit itself already opens files, and an archive of classes
    holds none that were loaded otherwise (from ``spark.jars``).
    """
    class_path = os.pathsep.join((jars.local_files, *jars.delta, *jars.s3))
    return {
        "spark.hadoop.fs.file.impl": LOCAL_FILES_CLASS,
        "spark.driver.extraClassPath": class_path,
        "spark.executor.extraClassPath": class_path,
    }


def _on_s3(client: S3Client) -> dict[str, str]:
    """Return what Spark needs for tables on S3; keys it takes from the environment itself, as the other clients do."""
    files, log_store = "spark.hadoop.fs", "spark.delta.logStore"
    result = {
        f"{files}.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        # Every new file has a name of its own, so the client need not look first whether a file or folder is there.
        f"{files}.s3a.performance.flags": "create,mkdir",
        f"{log_store}.s3.impl": LOG_STORE_CLASS,
        f"{log_store}.s3a.impl": LOG_STORE_CLASS,
    }
    if client.region is not None:
        result[f"{files}.s3a.endpoint.region"] = client.region
    if client.endpoint is not None:
        result[f"{files}.s3a.endpoint"] = client.endpoint
        result[f"{files}.s3a.path.style.access"] = "true"
        result[f"{files}.s3a.connection.ssl.enabled"] = str(not client.is_plain).lower()
    return result


def use_archive(path: str) -> str:
    """Return the Java options under which classes come from an archive.

    Java passes over one that is missing or does not fit its version or the class path, here without a word.
    """
    return f"-XX:SharedArchiveFile={path} -Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def _everywhere(settings: Settings) -> dict[str, str]:
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(settings.spark.shuffle_partitions),
        # Delta reads its log in 50 tasks by default: far too many for tables of this size.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # With each call of a column's method PySpark tells Java where it comes from, which a traceback shows as well:
        # an hour of ten jobs takes 22,800 commands to Java with it, and 13,100 without.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Rows of up to so many partitions go straight to a file each; without it every write sorts its rows first.
        "spark.sql.maxConcurrentOutputFileWriters": "16",
        # Spark keeps the code of 100 expressions by default: an ingestion has more, and would compile all of it again
        # in every run of a session (28 -> 15 s for an hour of one job).
        "spark.sql.codegen.cache.maxEntries": "5000",
        # Rows that are sorted by the keys of an aggregate are summed as they come, without a table of its groups.
        "spark.sql.execution.replaceHashWithSortAgg": "true",
        # By default each sort and each broadcast takes 64 MB at once, also for a hundred rows.
        "spark.buffer.pageSize": "4m",
        # Unused, as tables are addressed by path; by default Spark would make it in the working directory.
        "spark.sql.warehouse.dir": str(local_beside(settings.paths.out) / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": settings.spark.driver_memory,
        # A stage lives for a minute or two: the optimising compiler costs more than it gives back, and on a few cores
        # it and a concurrent collector take them from the tasks (a quiet plan stage: 59 -> 37 CPU seconds).
        # With one compiler Java reserves 48 MB for code, too little for what Spark generates: a JVM without room for it
        # loses tasks' results and waits for them for ever. 240 MB is what it reserves otherwise.
        # What Spark generates for a wide table has methods that Java by itself leaves to its interpreter.  A heap that
        # has its size from the start, in large pages, spares collections and page faults while it grows; so does room
        # for some 30,000 classes.  What outlives a collection are mostly rows that are kept: they are moved once.
        JAVA_OPTIONS: " ".join(
            (
                "-XX:TieredStopAtLevel=1 -XX:-DontCompileHugeMethods -XX:ReservedCodeCacheSize=240m",
                "-XX:MetaspaceSize=256m -XX:MaxTenuringThreshold=0",
                f"-XX:+UseParallelGC -XX:+UseTransparentHugePages -Xms{settings.spark.driver_memory}",
            )
        ),
        # Most numbers of bronze.metrics stand there once: a dictionary of them is begun, grows too large and is left.
        # Without it an hour of 1,000 jobs is written with 13.2 s of processor time instead of 16.5, in 1% more bytes.
        **{
            f"spark.hadoop.parquet.enable.dictionary#metrics.list.element.{name}": "false" for name in AGGREGATE_NUMBERS
        },
        # Threads of a stage take turns at the cores: a small query need not wait until a long write has ended.
        "spark.scheduler.mode": "FAIR",
        # One thread per Python worker: parallelism comes from Spark's tasks.
        "spark.executorEnv.OMP_NUM_THREADS": "1",
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    }
