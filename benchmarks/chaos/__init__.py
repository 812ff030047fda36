"""``make chaos``: the controller on a real Flink cluster while processes, network, disk, clock and people interfere."""
