"""Raw files -> bronze, quarantine, quality -> silver."""
