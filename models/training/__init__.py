"""From windows and events of jobs to their models: the one training, of the train stage, replays and benchmarks."""
