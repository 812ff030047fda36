"""``make bench``: time, memory and figures of the pipeline's parts, a file per name."""
