"""The queueing kernel of the simulator and of the replay: numpy arrays in, numpy arrays out, no state."""
