"""Domain types that every layer shares."""
