"""A queueing model of Flink jobs: many at once, stepping through time, observed by the metrics that Flink reports."""
