"""Learning of capacities from windows and the step to the next parallelism, of ContTune; several policies use them."""
