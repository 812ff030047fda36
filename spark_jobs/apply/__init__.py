"""Due steps -> Flink, or a record of what would be sent."""
