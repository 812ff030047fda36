"""What it is worth to know of an event beforehand, in the replay."""
