"""Raw files to typed rows with their faults."""
