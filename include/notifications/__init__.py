"""Messages about faults: which are due, what they say, and how they reach a webhook."""
