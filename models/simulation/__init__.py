"""A queueing model of Flink jobs: many at once, stepping through time, seen through the metrics that Flink reports."""
