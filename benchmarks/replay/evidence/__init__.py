"""The evidence: what is replayed for the published tables, and the tables."""
