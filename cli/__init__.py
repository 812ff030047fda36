"""What a person starts: the only layer that reads the clock."""
