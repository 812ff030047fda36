"""What operators run today besides the policies of the registry: candidates of the replay that no job can have."""
