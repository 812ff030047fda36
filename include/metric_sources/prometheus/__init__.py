"""Metrics from a server with Prometheus' HTTP API, written as the replies that Flink's REST API would have given."""
