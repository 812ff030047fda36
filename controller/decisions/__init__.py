"""Whether a job is rescaled now: observe, decide, record, check again, send."""
