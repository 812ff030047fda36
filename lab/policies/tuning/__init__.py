"""The step to the next parallelism, of ContTune; several policies use it."""
