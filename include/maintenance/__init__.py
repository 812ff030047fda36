"""Tables that live for years: what is removed, merged and vacuumed, without Spark."""
