"""Flink jobs as resources of the Flink Kubernetes operator: read, judged and patched through the API server."""
