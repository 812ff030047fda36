"""Nexmark's queries as SQL on a real Flink cluster: Tidewise beside the truth and other policies."""
