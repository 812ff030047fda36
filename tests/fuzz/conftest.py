"""The Spark session of the Spark tests."""

from __future__ import annotations

from tests.spark.conftest import spark

__all__ = ["spark"]
