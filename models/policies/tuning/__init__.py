"""Learning of capacities from windows, of ContTune; several policies use it."""
