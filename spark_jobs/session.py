"""Spark sessions: what every stage needs, whichever master runs it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from include.settings import Settings, s3_keys
from include.spark.conf import spark_conf
from include.spark.jars import spark_jars

_STATIC_CLASSES = ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils")
"""Classes as PySpark names them, of which it calls static methods alone."""


def start_session(settings: Settings, name: str) -> SparkSession:
    """Start a session, or join the one that spark-submit configured (its master and options win)."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    builder = SparkSession.builder.appName(f"tidewise-{name}")
    if "SPARK_ENV_LOADED" not in os.environ:  # set by spark-submit
        builder = builder.master(settings.spark.master)
        jars = spark_jars(Path(settings.spark.jars_dir), with_s3=bool(s3_keys(settings)))
        for key, value in spark_conf(settings, jars, settings.spark.master).items():
            builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    keep_class_references(session)
    return session


class _CachedMethods:
    """A Java class whose static methods are asked for once each: py4j asks the JVM at every call if there is one."""

    def __init__(self, java_class: Any) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        result = getattr(self._java_class, name)
        setattr(self, name, result)
        return result


def keep_class_references(spark: SparkSession) -> None:
    """Keep the references to Java classes that PySpark and Delta ask the JVM for again with every column and table.

    For a short or dotted name the JVM looks through all jars each time, and an ingestion asks 3,000 times: without this
    an hour of one job takes 16.1 s of processor time instead of 14.5 s. Which methods a class has is asked once, too.
    """
    jvm: Any = spark.sparkContext._jvm
    for name in _STATIC_CLASSES:
        setattr(jvm, name, _CachedMethods(getattr(jvm, name)))
    package = jvm
    for name in ("io", "delta", "tables", "DeltaTable"):
        setattr(package, name, getattr(package, name))
        package = getattr(package, name)


@contextmanager
def threads(spark: SparkSession) -> Iterator[ThreadPoolExecutor]:
    """Give a pool of threads with equal shares of the cores: while one plans or commits, others keep them busy.

    When the body fails, what has not begun is left out.
    """

    def take_share() -> None:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", threading.current_thread().name)

    with ThreadPoolExecutor(initializer=take_share) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
