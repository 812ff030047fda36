"""How long a job is down, and how late it is: downtimes, catch-ups, latency."""
