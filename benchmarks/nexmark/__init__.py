"""Nexmark's queries as SQL on a real Flink cluster: what Tidewise reads and wants beside the truth and other policies."""
