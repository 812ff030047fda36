"""Spark stages of the laboratory: what would have cost what, and what policies learn by night."""
