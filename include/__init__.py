"""The shared vocabulary: domain types, settings, table definitions, Flink client, DAG building blocks."""
